"""Where webhooks may lead."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from wms.core.errors import InvalidInput
from wms.notices.webhook_addresses import HostRefused, Target, checked_addresses, parsed

#: Loopback, private, link-local and the rest that the portal alone may reach, in many dresses.
INSIDE = [
    "127.0.0.1", "127.1.2.3", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "::1", "::", "fe80::1", "fc00::1", "fd12::1", "ff02::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::", "2002:a9fe:a9fe::", "2002:5db8:d70e::", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "192.0.0.192", "198.18.0.1", "192.88.99.1", "168.63.129.16", "100.100.100.200", "192.31.196.1",
    "2001:2::1", "2001:20::1", "2001:db8::1", "3fff::1", "3ffe::1", "2620:4f:8000::1", "100::1",
    "64:ff9b:1::7f00:1", "::127.0.0.1", "::10.0.0.1", "fec0::1", "5f00::1",
]  # fmt: skip


@pytest.fixture
def resolves_to(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let all names resolve to these addresses: there is no name server in a test."""

    def answer(*addresses: str) -> None:
        def find(host: str, port: int, **_: object) -> list[object]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

        monkeypatch.setattr(socket, "getaddrinfo", find)

    return answer


def _target(host: str = "hooks.example.org") -> Target:
    return Target("https", host, 443, "/")


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_inside_are_refused_whatever_names_them(
    resolves_to: Callable[..., None], address: str
) -> None:
    resolves_to(address)

    with pytest.raises(HostRefused):
        checked_addresses(_target(), allowed=())


def test_a_refusal_does_not_tell_whether_the_name_is_known_nor_where_it_leads(
    resolves_to: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = set()
    for address in ("10.0.0.1", "192.168.7.8", "fe80::1"):
        resolves_to(address)
        with pytest.raises(HostRefused) as refused:
            checked_addresses(_target(), allowed=())
        texts.add(str(refused.value))

    def find(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", find)
    with pytest.raises(HostRefused) as refused:
        checked_addresses(_target(), allowed=())

    assert texts == {str(refused.value)}
    assert "hooks.example.org" in str(refused.value)


@pytest.mark.parametrize(
    "address",
    ["93.184.215.14", "2606:2800:21f:cb07::1", "::ffff:93.184.215.14", "64:ff9b::5db8:d70e"],
)
def test_public_addresses_are_called(resolves_to: Callable[..., None], address: str) -> None:
    resolves_to(address)

    assert checked_addresses(_target(), allowed=()) == [address]


def test_a_name_with_one_address_inside_is_refused(resolves_to: Callable[..., None]) -> None:
    resolves_to("93.184.215.14", "10.0.0.1")

    with pytest.raises(HostRefused):
        checked_addresses(_target(), allowed=())


@pytest.mark.parametrize(
    "url", ["https://localhost/", "https://2130706433/", "https://0x7f000001/", "https://127.1/"]
)
def test_other_ways_to_write_the_loopback_are_known(url: str) -> None:
    """The system's own resolver reads them; so it is asked."""
    with pytest.raises(HostRefused):
        checked_addresses(parsed(url, allows_http=False), allowed=())


@pytest.mark.parametrize("word", ["10.0.0.0/8", "10.0.0.1", "hooks.example.org"])
def test_an_administrator_may_allow_networks_and_names(
    resolves_to: Callable[..., None], word: str
) -> None:
    resolves_to("10.0.0.1")

    assert checked_addresses(_target(), allowed=[word]) == ["10.0.0.1"]


def test_who_allows_an_address_of_ipv4_allows_it_in_the_dress_of_ipv6(
    resolves_to: Callable[..., None],
) -> None:
    resolves_to("::ffff:10.0.0.1")

    assert checked_addresses(_target(), allowed=["10.0.0.1"]) == ["::ffff:10.0.0.1"]


def test_what_is_allowed_allows_nothing_else(resolves_to: Callable[..., None]) -> None:
    resolves_to("10.0.0.1")

    with pytest.raises(HostRefused):
        checked_addresses(_target("other.example.org"), allowed=["hooks.example.org", "11.0.0.0/8"])


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://hooks.example.org/", "must begin with https://"),
        ("ftp://hooks.example.org/", "must begin with https://"),
        ("file:///etc/passwd", "must begin with https://"),
        ("hooks.example.org", "must begin with https://"),
        ("https:///path", "names no host"),
        ("https://user:secret@hooks.example.org/", "must not contain a user"),
        ("https://hooks.example.org/#part", "must not contain a fragment"),
        ("https://hooks.example.org:0/", "names no host"),
        ("https://hooks.example.org:99999/", "is not an address"),
        ("https://[::1/", "is not an address"),
        ("https://hooks.example.org/a b", "without spaces"),
        ("https://hooks.example.org/\r\nHost: x", "without spaces"),
        ("https://bücher.example/", "ASCII"),
        ("https://hooks..example.org/", "names no host that there can be"),
        ("https://" + "x" * 64 + ".example.org/", "names no host that there can be"),
        ("https://hooks.example.org/" + "x" * 500, "at most 500"),
    ],
)
def test_what_could_not_be_called_is_refused_with_its_reason(url: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        parsed(url, allows_http=False)

    assert caught.value.findings[0].field == "url"
    assert "secret" not in str(caught.value)


def test_plain_http_is_called_where_it_is_allowed() -> None:
    target = parsed("http://Hooks.example.org:8080/in?token=x", allows_http=True)

    assert target == Target("http", "hooks.example.org", 8080, "/in?token=x")
    assert target.authority == "hooks.example.org:8080"

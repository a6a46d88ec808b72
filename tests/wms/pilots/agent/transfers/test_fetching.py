"""Fetches by the pilot from a real HTTP server: resumed, repeated, refused, stopped."""

from __future__ import annotations

import contextlib
import hashlib
import random
import resource
import socket
import threading
from pathlib import Path

import pytest

from tests.wms.placement.servers.http import HttpServer, http_server
from tests.wms.placement.servers.tls import make_certificate, server_side
from wms.pilots.agent.transfers.fetching import TRIES, Fetcher
from wms.pilots.agent.transfers.rules import (
    Source,
    TransferBroken,
    TransferRefused,
    TransferRules,
)

X = random.Random(7).randbytes(700_000)
LIMITS = {"limit_s": 60, "stall_s": 30, "file_bytes": 10**6, "refused": ["127.0.0.0/8"]}


class Unwanted(Exception):
    """The job is not wanted any more."""


@pytest.fixture
def site():
    with http_server() as running:
        running.files["/x"] = X
        yield running


def fetcher(check=lambda: None, *, allowed=("127.0.0.1",), **limits: object) -> Fetcher:
    """Without pauses."""
    rules = TransferRules.from_json({**LIMITS, "allowed": allowed, **limits})
    return Fetcher(rules, check, lambda pause_s: None, lambda count: None)


def fetch(site: HttpServer, target: Path, by: Fetcher | None = None, path: str = "/x") -> None:
    (by or fetcher()).fetch([Source(site.url(path))], target, most_bytes=10**9)


def test_a_file_comes_whole_and_its_bytes_are_counted(site: HttpServer, tmp_path: Path) -> None:
    counts: list[int] = []
    by = Fetcher(fetcher().rules, lambda: None, lambda pause_s: None, counts.append)

    fetch(site, tmp_path / "x", by)

    assert (tmp_path / "x").read_bytes() == X
    assert sum(counts) == len(X)


def test_a_try_goes_on_where_the_last_one_broke_off(site: HttpServer, tmp_path: Path) -> None:
    site.cuts = 2

    fetch(site, tmp_path / "x")

    assert (tmp_path / "x").read_bytes() == X
    half = len(X) // 2
    three_quarters = half + (len(X) - half) // 2
    ranges = [each for _, _, each in site.requests]
    assert ranges == ["", f"bytes={half}-", f"bytes={three_quarters}-"]


def test_a_file_that_has_changed_meanwhile_begins_anew(site: HttpServer, tmp_path: Path) -> None:
    site.cuts, other = 1, X[::-1]

    def change(pause_s: float) -> None:
        site.files["/x"] = other

    by = Fetcher(fetcher().rules, lambda: None, change, lambda count: None)
    fetch(site, tmp_path / "x", by)

    assert (tmp_path / "x").read_bytes() == other


def test_tries_have_an_end(site: HttpServer, tmp_path: Path) -> None:
    site.cuts = 100

    with pytest.raises(TransferBroken):
        fetch(site, tmp_path / "x")

    assert len(site.requests) == TRIES


def test_what_does_not_exist_or_is_forbidden_is_asked_for_once(
    site: HttpServer, tmp_path: Path
) -> None:
    with pytest.raises(TransferRefused, match="404"):
        fetch(site, tmp_path / "x", path="/none")
    site.password = "a:b"
    with pytest.raises(TransferRefused, match="401"):
        fetch(site, tmp_path / "x")

    assert len(site.requests) == 2


def test_the_next_source_is_asked_where_one_refuses(site: HttpServer, tmp_path: Path) -> None:
    sources = [Source(site.url("/none")), Source(site.url("/x"))]

    fetcher().fetch(sources, tmp_path / "x", most_bytes=10**9)

    assert (tmp_path / "x").read_bytes() == X


def test_a_replica_that_is_another_file_is_passed_over(site: HttpServer, tmp_path: Path) -> None:
    site.files["/other"] = X[::-1]
    sha256, sources = hashlib.sha256(X).hexdigest(), [site.url("/other"), site.url("/x")]
    target = tmp_path / "x"

    fetcher().fetch([Source(url) for url in sources], target, most_bytes=10**9, sha256=sha256)
    assert target.read_bytes() == X

    with pytest.raises(TransferBroken):
        fetcher().fetch([Source(sources[0])], target, most_bytes=10**9, sha256=sha256)


def test_a_file_of_many_pieces_is_hashed_over_its_tries(tmp_path: Path, monkeypatch) -> None:
    certificate, content = make_certificate(tmp_path), X * 8
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with http_server(tls=server_side(certificate)) as site:
        site.files["/x"], site.cuts = content, 1
        source = Source(f"https://127.0.0.1:{site.port}/x")
        sha256 = hashlib.sha256(content).hexdigest()

        fetcher(file_bytes=10**7).fetch([source], tmp_path / "x", most_bytes=10**9, sha256=sha256)

        ranges = [each for _, _, each in site.requests]
    assert ranges == ["", f"bytes={len(content) // 2}-"]
    assert (tmp_path / "x").read_bytes() == content


def test_a_fetch_ends_where_the_disk_takes_no_more(site: HttpServer, tmp_path: Path) -> None:
    site.files["/x"] = X * 8
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * len(X), before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            fetch(site, tmp_path / "x", fetcher(file_bytes=10**7))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert len(site.requests) == 1


@pytest.mark.parametrize("most_bytes", [len(X) - 1, 0])
def test_a_file_that_is_too_large_is_refused(
    site: HttpServer, tmp_path: Path, most_bytes: int
) -> None:
    with pytest.raises(TransferRefused):
        fetcher().fetch([Source(site.url("/x"))], tmp_path / "x", most_bytes=most_bytes)
    with pytest.raises(TransferRefused):
        fetch(site, tmp_path / "x", fetcher(file_bytes=len(X) - 1))


def test_a_credential_is_shown_to_its_own_host_alone(site: HttpServer, tmp_path: Path) -> None:
    with http_server() as other:
        other.files["/x"] = X
        site.redirects["/there"] = other.url("/x")

        fetcher().fetch(
            [Source(site.url("/there"), "Bearer open-sesame")], tmp_path / "x", most_bytes=10**9
        )

        assert site.credentials == ["Bearer open-sesame"]
        assert other.credentials == [""]


def test_addresses_that_are_not_allowed_are_not_reached(site: HttpServer, tmp_path: Path) -> None:
    site.redirects["/there"] = f"http://[::ffff:127.0.0.1]:{site.port}/x"
    with pytest.raises(TransferRefused):
        fetch(site, tmp_path / "x", fetcher(allowed=()))
    with pytest.raises(TransferRefused):
        fetch(site, tmp_path / "x", fetcher(allowed=(), refused=["::/3", "127.0.0.0/8"]))
    assert not site.requests

    url = f"http://localhost:{site.port}/x"
    fetcher(allowed=("LocalHost",)).fetch([Source(url)], tmp_path / "x", most_bytes=10**9)
    fetch(site, tmp_path / "x", path="/there")

    assert (tmp_path / "x").read_bytes() == X


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/x", "http://", "file:///etc/passwd", ""])
def test_a_redirect_to_what_is_no_url_of_http_is_refused(
    site: HttpServer, tmp_path: Path, target: str
) -> None:
    site.redirects["/x"] = target or "/x"

    with pytest.raises(TransferRefused):
        fetch(site, tmp_path / "x")


def test_what_stalls_breaks_off_and_a_request_to_end_is_heeded_at_once(
    site: HttpServer, tmp_path: Path
) -> None:
    site.stalls = True
    with pytest.raises(TransferBroken):
        fetch(site, tmp_path / "x", fetcher(stall_s=0))
    with pytest.raises(TransferBroken):
        fetch(site, tmp_path / "x", fetcher(limit_s=-1))

    def end() -> None:
        if (tmp_path / "y").exists():
            raise Unwanted

    with pytest.raises(Unwanted):
        fetch(site, tmp_path / "y", fetcher(end))


ODD_ANSWERS = [
    b"",
    b"220 mail.example.org\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://[::1/x\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: /\xc3\xa4\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:99999/\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nmuch\r\n",
    b'HTTP/1.1 200 OK\r\nAccept-Ranges: bytes\r\nETag: "\xff"\r\nContent-Length: 9\r\n\r\nab',
    b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\nabcde",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200,
    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000,
]


@pytest.mark.parametrize("answer", ODD_ANSWERS, ids=range(len(ODD_ANSWERS)))
def test_no_answer_is_taken_for_a_file_that_is_none(tmp_path: Path, answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(65536)
                        connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        with pytest.raises((TransferBroken, TransferRefused)):
            fetcher().fetch([Source(url)], tmp_path / "x", most_bytes=10**9)
        server.shutdown(socket.SHUT_RDWR)
        thread.join(30)


def test_secrets_are_in_no_text_of_a_source() -> None:
    assert "sesame" not in repr(Source("https://x.org/a", "Bearer open-sesame"))

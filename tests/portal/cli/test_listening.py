"""Where the web server listens."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from portal.cli.listening import Listen, UnusableListen, configured_listen
from portal.cli.supervision import web_command
from portal.embedded.ports import LOOPBACK, free_ports, kept_ports


def test_nothing_is_wanted_without_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PILOTAGE_LISTEN", raising=False)

    assert configured_listen() is None


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost"])
def test_an_address_of_this_host_is_taken(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    (port,) = free_ports(1)
    monkeypatch.setenv("PILOTAGE_LISTEN", f"{host}:{port}")

    assert configured_listen() == Listen(host, port)


@pytest.mark.parametrize(
    "text", ["8000", ":8000", "0.0.0.0", "0.0.0.0:0", "0.0.0.0:70000", "a b:1"]
)
def test_what_is_no_address_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PILOTAGE_LISTEN", text)

    with pytest.raises(UnusableListen, match="must be HOST:PORT"):
        configured_listen()


def test_a_port_that_is_taken_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        monkeypatch.setenv("PILOTAGE_LISTEN", f"0.0.0.0:{other.getsockname()[1]}")

        with pytest.raises(UnusableListen, match=os.strerror(errno.EADDRINUSE)):
            configured_listen()


@pytest.mark.parametrize(
    ("host", "binds"),
    [
        ("127.0.0.1", ["127.0.0.1:8000"]),
        ("0.0.0.0", ["0.0.0.0:8000"]),
        ("[::]", ["[::]:8000"]),
        ("192.0.2.7", ["127.0.0.1:8000", "192.0.2.7:8000"]),
    ],
)
def test_programs_of_this_host_find_it_on_the_loopback_address(host: str, binds: list[str]) -> None:
    command = web_command(Listen(host, 8000))

    assert [command[n + 1] for n, word in enumerate(command) if word == "--bind"] == binds


def test_a_given_port_is_kept_and_given_to_nothing_else(tmp_path) -> None:
    (port,) = free_ports(1)
    file = tmp_path / "ports.json"
    kept_ports(file, ("web", "postgres"), {"postgres": port})

    ports = kept_ports(file, ("web", "postgres"), {}, given={"web": port})

    assert ports["web"] == port
    assert ports["postgres"] != port

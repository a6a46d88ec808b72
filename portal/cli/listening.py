"""Listen addresses of the web server: loopback, and PILOTAGE_LISTEN, checked to be usable."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

from portal.config import env
from portal.embedded.ports import LOOPBACK

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):([0-9]{1,5})")
#: Addresses that stand for all of a host, its loopback address among them.
_ALL = {"0.0.0.0", "[::]"}


class UnusableListen(Exception):
    """PILOTAGE_LISTEN is no address that this host can listen on; the text says why."""


@dataclass(frozen=True, slots=True)
class Listen:
    """An address of this host, and a port; one of IPv6 is in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def binds(self) -> list[str]:
        """Addresses to which the web server is bound; the loopback address is always covered."""
        own = f"{LOOPBACK}:{self.port}"
        return [str(self)] if self.host in _ALL else list(dict.fromkeys([own, str(self)]))


def configured_listen() -> Listen | None:
    """Address in PILOTAGE_LISTEN, if it is set. Raises UnusableListen."""
    text = env.text("PILOTAGE_LISTEN", "").strip()
    if not text:
        return None
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found[2]) < 2**16:
        raise UnusableListen(f"PILOTAGE_LISTEN must be HOST:PORT, as 0.0.0.0:8000, not {text!r}")
    wanted = Listen(found[1], int(found[2]))
    for bind in wanted.binds():
        _try(bind)
    return wanted


def _try(bind: str) -> None:
    host, _, port = bind.rpartition(":")
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise UnusableListen(
            f"PILOTAGE_LISTEN: cannot listen on {bind}: {error.strerror}"
        ) from None

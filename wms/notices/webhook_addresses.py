"""Check of webhook URLs and their hosts: no address of networks that only the portal can reach.

A name is resolved once, all of its addresses are checked, and the connection is made to a checked
address: a name that resolves otherwise a moment later gains nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import structlog

from wms.core.errors import InvalidInput
from wms.notices.special_networks import Network, effective_address, is_special

MAX_URL = 500
_PORTS = {"https": 443, "http": 80}
log = structlog.get_logger(__name__)


class HostRefused(Exception):
    """The host cannot be called.

    The text is the same for a name that nobody knows and for one that leads to where webhooks must
    not: whoever names hosts learns nothing of the networks that the portal can reach.
    """

    def __init__(self, host: str) -> None:
        super().__init__(
            f"{host} is not known, or is not at a public address; an administrator may allow it "
            "(PILOTAGE_WEBHOOKS_ALLOWED)"
        )


@dataclass(frozen=True, slots=True)
class Target:
    """Parts of a webhook's URL."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Value of the header Host."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _PORTS[self.scheme] else f"{name}:{self.port}"


def parsed(url: str, *, allows_http: bool) -> Target:
    """The parts of a URL. Raises InvalidInput where it is not one that could be called."""
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise _fault(f"must be at most {MAX_URL} ASCII characters without spaces")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        raise _fault("is not an address of the web") from None
    if parts.scheme not in ({"https", "http"} if allows_http else {"https"}):
        raise _fault("must begin with https://" + (" or http://" if allows_http else ""))
    if not host or port == 0:
        raise _fault("names no host")
    if not _is_name(host):
        raise _fault("names no host that there can be")
    if parts.username is not None or parts.password is not None:
        raise _fault("must not contain a user or a password: use the signature")
    if parts.fragment:
        raise _fault("must not contain a fragment (#)")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host.lower(), port or _PORTS[parts.scheme], path)


def _is_name(host: str) -> bool:
    """False for host names that cannot be resolved: parts that are empty or too long."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def _fault(message: str) -> InvalidInput:
    return InvalidInput.of(message, field="url")


def checked_addresses(target: Target, *, allowed: Iterable[str]) -> Sequence[str]:
    """The addresses of the host, all of them checked. Raises HostRefused; the log has the reason.

    `allowed` are networks, addresses and names that the administrator lets webhooks reach.
    """
    names, networks = _allowed(allowed)
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except OSError as error:
        log.warning("webhook_host_unknown", host=target.host, error=str(error))
        raise HostRefused(target.host) from None
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    if target.host in names:
        return addresses
    for text in addresses:
        address = effective_address(ipaddress.ip_address(text.partition("%")[0]))
        if is_special(address) and not any(address in network for network in networks):
            log.warning("webhook_host_not_public", host=target.host, address=str(address))
            raise HostRefused(target.host)
    return addresses


def _allowed(words: Iterable[str]) -> tuple[set[str], list[Network]]:
    names: set[str] = set()
    networks: list[Network] = []
    for word in words:
        try:
            networks.append(ipaddress.ip_network(word, strict=False))
        except ValueError:
            names.add(word.lower())
    return names, networks

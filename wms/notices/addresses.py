"""Where webhooks may lead: not into the networks that only the portal can reach.

A name is resolved once, all of its addresses are checked, and the connection is made to a checked
address: a name that resolves otherwise a moment later gains nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from wms.core.errors import InvalidInput

MAX_URL = 500
_PORTS = {"https": 443, "http": 80}
#: Addresses of IPv4 in those of IPv6, by which a gateway leads into the other network.
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
#: Where the addresses of IPv6 are that the world can reach. What lies beside it - of gateways of a
#: site's own, of IPv4 in an old way, of sites - counts as public nowhere, whatever its tables say.
_WORLD = ipaddress.ip_network("2000::/3")

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Refused(Exception):
    """The host leads to where webhooks must not; the text says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """An address of the web, in parts."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """What the header Host says."""
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
    """False for what no resolver is asked for: parts that are empty or too long."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def _fault(message: str) -> InvalidInput:
    return InvalidInput.of(message, field="url")


def checked_addresses(target: Target, *, allowed: Iterable[str]) -> Sequence[str]:
    """The addresses of the host, all of them checked. Raises Refused, and OSError if unknown.

    `allowed` are networks, addresses and names that the administrator lets webhooks reach.
    """
    names, networks = _allowed(allowed)
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    if target.host in names:
        return addresses
    for text in addresses:
        address = _meant(ipaddress.ip_address(text.partition("%")[0]))
        if not _is_public(address) and not any(address in network for network in networks):
            raise Refused(
                f"{target.host} leads to {address}, which is not a public address; an "
                "administrator may allow it (PILOTAGE_WEBHOOKS_ALLOWED)"
            )
    return addresses


def _allowed(
    words: Iterable[str],
) -> tuple[set[str], list[ipaddress.IPv4Network | ipaddress.IPv6Network]]:
    names, networks = set(), []
    for word in words:
        try:
            networks.append(ipaddress.ip_network(word, strict=False))
        except ValueError:
            names.add(word.lower())
    return names, networks


def _meant(address: _Address) -> _Address:
    """The address of IPv4 that one of IPv6 stands for, or itself."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, address))[1]


def _is_public(address: _Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _WORLD:
        return False
    return address.is_global and not address.is_multicast

"""Addresses of a host that the portal calls for others: none of networks that only it can reach.

A name is resolved once, all of its addresses are checked, and the connection is made to a checked
address: a name that resolves otherwise a moment later gains nothing.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Sequence

import structlog

from wms.core.special_networks import Network, effective_address, is_special

log = structlog.get_logger(__name__)


#: Numbers of the forms that `inet_aton` reads: decimal, octal and hexadecimal ones, one to four.
_NUMBERS = re.compile(r"(?:0x[0-9a-f]+|[0-9]+)(?:\.(?:0x[0-9a-f]+|[0-9]+)){0,3}", re.IGNORECASE)


class NotPublic(Exception):
    """The host is not known, or one of its addresses is not public; the log tells which."""


class UnknownHost(NotPublic):
    """Nobody knows the host."""


def public_addresses(host: str, port: int, *, allowed: Iterable[str]) -> Sequence[str]:
    """The addresses of the host, all of them checked. Raises NotPublic.

    `allowed` are networks, addresses and names that an administrator lets the portal reach.
    """
    names, networks = _allowed(allowed)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        log.warning("called_host_unknown", host=host, error=str(error))
        raise UnknownHost from None
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    if host in names:
        return addresses
    for text in addresses:
        if not _is_public(text, networks):
            log.warning("called_host_not_public", host=host, address=text)
            raise NotPublic
    return addresses


def is_refused(host: str, *, allowed: Iterable[str]) -> bool:
    """Whether a host that is an address, and not a name, is one that must not be called.

    As the system takes it for one: `127.1`, `0x7f.0.0.1` and `2130706433` are the loopback address.
    """
    names, networks = _allowed(allowed)
    try:
        return host not in names and not _is_public(_as_system(host), networks)
    except ValueError:
        return False


def _as_system(host: str) -> str:
    """The address that a text stands for which the system reads as numbers; else the text."""
    if _NUMBERS.fullmatch(host) is None:
        return host
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return host


def _is_public(text: str, networks: Iterable[Network]) -> bool:
    """Whether an address may be called. Raises ValueError for a text that is none."""
    address = effective_address(ipaddress.ip_address(text.partition("%")[0]))
    return not is_special(address) or any(address in network for network in networks)


def _allowed(words: Iterable[str]) -> tuple[set[str], list[Network]]:
    names: set[str] = set()
    networks: list[Network] = []
    for word in words:
        try:
            networks.append(ipaddress.ip_network(word, strict=False))
        except ValueError:
            names.add(word.lower())
    return names, networks

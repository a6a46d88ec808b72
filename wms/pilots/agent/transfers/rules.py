"""Rules of a pilot's transfers, as the server tells them with a job: limits, addresses, sources.

Also the two ways in which a transfer fails.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Network = ipaddress.IPv4Network | ipaddress.IPv6Network
    Address = ipaddress.IPv4Address | ipaddress.IPv6Address

#: The last four bytes of these are an address of IPv4, which is what is reached: by the system
#: itself (RFC 4291), or by the gateway of a network without IPv4 (RFC 6052).
_CARRIERS = (ipaddress.IPv6Network("::ffff:0:0/96"), ipaddress.IPv6Network("64:ff9b::/96"))


class TransferRefused(Exception):
    """No other try helps, neither here nor elsewhere: no such file, no permission, a limit."""


class TransferBroken(Exception):
    """It failed in a way that another try may mend, here or elsewhere."""


@dataclass(frozen=True)
class Source:
    """An address of a file, and the header that its host is to be shown alone."""

    url: str
    authorization: str = field(default="", repr=False)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Source:
        """Read the server's description; call it within `parsing`."""
        return cls(str(data["url"]), str(data.get("authorization") or ""))


@dataclass(frozen=True)
class TransferRules:
    """Limits of each try in time and of each file in bytes, and which addresses are reached."""

    limit_s: float
    stall_s: float
    file_bytes: int
    refused: tuple[Network, ...] = ()
    allowed_networks: tuple[Network, ...] = ()
    allowed_names: frozenset[str] = frozenset()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TransferRules:
        """Read the server's description; call it within `parsing`."""
        names: set[str] = set()
        networks: list[Network] = []
        for word in data["allowed"]:
            try:
                networks.append(ipaddress.ip_network(str(word), strict=False))
            except ValueError:
                names.add(str(word).lower())
        return cls(
            limit_s=float(data["limit_s"]),
            stall_s=float(data["stall_s"]),
            file_bytes=int(data["file_bytes"]),
            refused=tuple(ipaddress.ip_network(str(each)) for each in data["refused"]),
            allowed_networks=tuple(networks),
            allowed_names=frozenset(names),
        )

    def may_reach(self, host: str, address: str) -> bool:
        """Whether a host may be reached at one of its addresses."""
        if host in self.allowed_names:
            return True
        found = _effective(ipaddress.ip_address(address.partition("%")[0]))
        if not any(found in network for network in self.refused):
            return True
        return any(found in network for network in self.allowed_networks)


def _effective(address: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to, or the address itself."""
    if isinstance(address, ipaddress.IPv6Address) and any(address in each for each in _CARRIERS):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def without_secrets(url: str) -> str:
    """A URL for logs and reasons: without its query, which may be signed."""
    return url.partition("?")[0][:200]

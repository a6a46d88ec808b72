"""Table of networks that are not of the public internet (IANA's special-purpose registries).

Also whether an address is in one of them, IPv4 addresses within IPv6 ones included: no host that
the portal calls for others can have such an address. The table is our own: what the standard
library counts as public depends on its version. All entries of the registries are in it, those that
may be routed too: nobody answers there.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

#: What each network is for, with its source.
_IPV4: Mapping[str, str] = {
    "0.0.0.0/8": "this network (RFC 791)",
    "10.0.0.0/8": "private use (RFC 1918)",
    "100.64.0.0/10": "shared address space (RFC 6598)",
    "127.0.0.0/8": "loopback (RFC 1122)",
    "168.63.129.16/32": "the host of a virtual machine (Azure: what is IP address 168.63.129.16)",
    "169.254.0.0/16": "link local, metadata of clouds (RFC 3927)",
    "172.16.0.0/12": "private use (RFC 1918)",
    "192.0.0.0/24": "protocol assignments: DS-Lite, PCP, TURN, NAT64 discovery (RFC 6890)",
    "192.0.2.0/24": "documentation (RFC 5737)",
    "192.31.196.0/24": "AS112 (RFC 7535)",
    "192.52.193.0/24": "AMT (RFC 7450)",
    "192.88.99.0/24": "6to4 relays (RFC 7526)",
    "192.168.0.0/16": "private use (RFC 1918)",
    "192.175.48.0/24": "AS112 (RFC 7534)",
    "198.18.0.0/15": "benchmarking (RFC 2544)",
    "198.51.100.0/24": "documentation (RFC 5737)",
    "203.0.113.0/24": "documentation (RFC 5737)",
    "224.0.0.0/4": "multicast (RFC 5771)",
    "240.0.0.0/4": "reserved, and the broadcast address (RFC 1112, RFC 8190)",
}
#: All but the unicast addresses of the world, 2000::/3 (RFC 4291), is named by the first three.
_IPV6: Mapping[str, str] = {
    "::/3": "unspecified, loopback, IPv4 in IPv6, NAT64, discard (RFC 4291, RFC 6052, RFC 8215, "
    "RFC 6666)",
    "4000::/2": "not assigned, segment routing (RFC 4291, RFC 9602)",
    "8000::/1": "not assigned, unique local, link local, site local, multicast (RFC 4291, "
    "RFC 4193, RFC 3879)",
    "2001::/23": "protocol assignments: Teredo, benchmarking, AMT, AS112, ORCHID, DRIP (RFC 2928, "
    "RFC 4380, RFC 5180, RFC 7450, RFC 7535, RFC 7343, RFC 9374)",
    "2001:db8::/32": "documentation (RFC 3849)",
    "2002::/16": "6to4 (RFC 3056, RFC 7526)",
    "2620:4f:8000::/48": "AS112 (RFC 7534)",
    "3ffe::/16": "6bone, given back (RFC 3701)",
    "3fff::/20": "documentation (RFC 9637)",
}
_SPECIAL: tuple[Network, ...] = tuple(map(ipaddress.ip_network, (*_IPV4, *_IPV6)))
#: The last four bytes of these are an address of IPv4, which is what is reached: by the system
#: itself (RFC 4291), or by the gateway of a network without IPv4 (RFC 6052).
_CARRIERS = tuple(map(ipaddress.IPv6Network, ("::ffff:0:0/96", "64:ff9b::/96")))


def special_networks() -> tuple[str, ...]:
    """The networks of the table, for those who look at addresses elsewhere."""
    return *_IPV4, *_IPV6


def effective_address(address: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to, or the address itself."""
    if isinstance(address, ipaddress.IPv6Address) and any(address in each for each in _CARRIERS):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def is_special(address: Address) -> bool:
    """True for an address, made by `effective_address`, that no such host can have."""
    return any(address in network for network in _SPECIAL)

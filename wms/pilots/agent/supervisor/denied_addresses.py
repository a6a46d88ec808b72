"""Addresses that no payload may reach: link-local ones and the metadata services of clouds.

Also the address in a sockaddr, and the node's name servers, which are let through. A module of the
supervisor's program.
"""

from __future__ import annotations

import socket
import struct

#: Link-local, and where clouds tell secrets at other addresses: Azure, Alibaba, Oracle, Amazon,
#: Google.
_DENIED_4 = (
    ("169.254.0.0", 16),
    ("168.63.129.16", 32),
    ("100.100.100.200", 32),
    ("192.0.0.192", 32),
)
_DENIED_6 = (("fe80::", 10), ("fd00:ec2::", 32), ("fd20:ce::254", 128))
#: The same as the kernel writes them: the address, and how many of its bits count.
NETS = (
    *((socket.inet_pton(socket.AF_INET, text), bits) for text, bits in _DENIED_4),
    *((socket.inet_pton(socket.AF_INET6, text), bits) for text, bits in _DENIED_6),
)
_MAPPED = bytes(10) + b"\xff\xff"
DNS_PORT = 53
_RESOLV_CONF = "/etc/resolv.conf"


def address_in(sockaddr: bytes) -> tuple[bytes, int]:
    """Address and port of a sockaddr; an empty address if it has none.

    An IPv4 address that is written as IPv6 counts as IPv4.
    """
    family, port = struct.unpack_from("=H2s", sockaddr) if len(sockaddr) >= 4 else (0, b"")
    if family == socket.AF_INET:
        return sockaddr[4:8], int.from_bytes(port, "big")
    if family == socket.AF_INET6:
        address = sockaddr[8:24]
        is_mapped = address.startswith(_MAPPED)
        return (address[12:] if is_mapped else address), int.from_bytes(port, "big")
    return b"", 0


def is_denied(address: bytes) -> bool:
    """Tell whether an address is one of those that no payload may reach."""
    return any(
        len(net) == len(address)
        and int.from_bytes(net, "big") >> 8 * len(net) - bits
        == int.from_bytes(address, "big") >> 8 * len(net) - bits
        for net, bits in NETS
    )


def name_servers() -> list[bytes]:
    """Name servers of this node: some clouds have theirs at a denied address."""
    servers = []
    try:
        with open(_RESOLV_CONF, encoding="utf-8", errors="replace") as lines:
            words = [line.split() for line in lines]
    except OSError:
        return []
    for line in words:
        if len(line) > 1 and line[0] == "nameserver":
            family = socket.AF_INET6 if ":" in line[1] else socket.AF_INET
            try:
                servers.append(socket.inet_pton(family, line[1]))
            except OSError:
                continue
    return servers

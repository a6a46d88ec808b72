"""Packet filter of one socket: nothing from denied addresses gets in, and it cannot be removed.

A module of the supervisor's program.
"""

from __future__ import annotations

import array
import socket
import struct

from .denied_addresses import DNS_PORT, NETS, is_denied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_SO_ATTACH_FILTER, _SO_LOCK_FILTER = 26, 44
_LOAD, _LOAD_HALF, _LOAD_BYTE, _RETURN = 0x20, 0x28, 0x30, 0x06
_AND, _SHIFT, _EQUAL = 0x54, 0x74, 0x15
_HEADER = 0xFFF00000
_ALL, _NOTHING = (_RETURN, 0, 0, 0xFFFFFFFF), (_RETURN, 0, 0, 0)


def put_on(made: socket.socket, steps: bytes) -> None:
    """Attach a filter to a socket for good. Raises OSError: some kernels let only root do it."""
    buffer = array.array("B", steps)
    program = struct.pack("HP", len(steps) // 8, buffer.buffer_info()[0])
    made.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
    made.setsockopt(socket.SOL_SOCKET, _SO_LOCK_FILTER, 1)


def can_put_on() -> bool:
    """Tell whether this process may attach filters to sockets."""
    try:
        with socket.socket() as made:
            put_on(made, socket_filter(()))
    except OSError:
        return False
    return True


def socket_filter(name_servers: Sequence[bytes]) -> bytes:
    """Filter program: nothing from denied addresses but the answers of these name servers.

    It sees a packet from the head of TCP or UDP on, and that of the network by another way.
    """
    exempt = [each for each in name_servers if is_denied(each)]
    four = [step for net in NETS if len(net[0]) == 4 for step in _drop(*net, 12)]
    six = [step for net in NETS if len(net[0]) == 16 for step in _drop(*net, 8)]
    pass_4 = [step for each in exempt if len(each) == 4 for step in _pass_names(each, 12)]
    pass_6 = [step for each in exempt if len(each) == 16 for step in _pass_names(each, 8)]
    of_4, of_6 = [*pass_4, *four, _ALL], [*pass_6, *six, _ALL]
    steps = [
        (_LOAD_BYTE, 0, 0, _HEADER),
        (_SHIFT, 0, 0, 4),
        (_EQUAL, 0, len(of_4), 4),
        *of_4,
        (_EQUAL, 0, len(of_6), 6),
        *of_6,
        _ALL,
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _drop(net: bytes, bits: int, offset: int) -> list[tuple[int, int, int, int]]:
    return _if_from(net, bits, offset, [_NOTHING])


def _pass_names(address: bytes, offset: int) -> list[tuple[int, int, int, int]]:
    is_dns = [(_LOAD_HALF, 0, 0, 0), (_EQUAL, 0, 1, DNS_PORT), _ALL]
    return _if_from(address, 8 * len(address), offset, is_dns)


def _if_from(
    net: bytes, bits: int, offset: int, then: Sequence[tuple[int, int, int, int]]
) -> list[tuple[int, int, int, int]]:
    """Do `then` with a packet whose sender, at this offset of its head, is in the net."""
    steps = list(then)
    # From the last word of the address to the first: each jumps over what comes after it.
    for index in reversed(range((bits + 31) // 32)):
        word = int.from_bytes(net[index * 4 : index * 4 + 4], "big")
        kept = min(bits - index * 32, 32)
        mask = (0xFFFFFFFF << (32 - kept)) & 0xFFFFFFFF
        steps = [
            (_LOAD, 0, 0, _HEADER + offset + index * 4),
            (_AND, 0, 0, mask),
            (_EQUAL, 0, len(steps), word & mask),
            *steps,
        ]
    return steps

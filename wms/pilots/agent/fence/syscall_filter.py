"""Filters of payloads' system calls (seccomp), as programs of the kernel's packet filter.

`denied` keeps from the kernel's edges what no payload needs: further namespaces, mounts, keys,
modules, other ways around a filter. `watched` asks the network guard before a connection opens.
Calls that a newer kernel may add are answered as an older kernel would.
"""

from __future__ import annotations

import errno
import platform
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: One instruction: code, jump if true, jump if false, value.
Step = tuple[int, int, int, int]

_LOAD, _AND, _RETURN, _JUMP = 0x20, 0x54, 0x06, 0x05
_EQUAL, _FROM, _ANY_BIT = 0x15, 0x35, 0x45
_KILL, _ERROR, _ASK, _ALLOW = 0x80000000, 0x00050000, 0x7FC00000, 0x7FFF0000
# Where the kernel shows the call: its number, the machine, and the lower half of each argument.
_NUMBER, _MACHINE, _ARGUMENTS, _ARGUMENT_BYTES = 0, 4, 16, 8
_LONGEST_JUMP = 255
_X32_BIT = 0x40000000

_NAMESPACES = 0x7E020080
_MSG_FASTOPEN = 0x20000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_FAMILIES = (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK)
_TYPE_MASK, _SOCK_STREAM, _SOCK_DGRAM, _SOCK_RAW = 0xF, 1, 2, 3
_IPPROTO_TCP = 6
#: Protocols: 0 (the default) and TCP; UDP and the two kinds of echoes.
_OF_STREAMS, _OF_DATAGRAMS = (0, _IPPROTO_TCP), (0, 1, 17, 58)
#: TCP_FASTOPEN_CONNECT and TCP_FASTOPEN_NO_COOKIE: data would go before an answer comes.
_FAST_OPEN = (30, 34)
#: Those of Docker (PER_LINUX32 and UNAME26 among them), the question, and what debuggers set.
_PERSONALITIES = (0, 0x0008, 0x20000, 0x20008, 0x40000, 0xFFFFFFFF)
#: The last system call that was known here, of Linux 6.18; the same on all machines.
_LAST = 469


@dataclass(frozen=True)
class _Machine:
    """Machine as the kernel names it, and the column of its numbers in the table."""

    audit: int
    column: int


_MACHINES = {"x86_64": _Machine(0xC000003E, 0), "aarch64": _Machine(0xC00000B7, 1)}
#: Numbers on x86_64 and on aarch64; None where the machine does not have it.
_NUMBERS: Mapping[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clone": (56, 220),
    "clone3": (435, 435),
    "connect": (42, 203),
    "create_module": (174, None),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sendmmsg": (307, 269),
    "sendmsg": (46, 211),
    "sendto": (44, 206),
    "setns": (308, 268),
    "setsockopt": (54, 208),
    "socket": (41, 198),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "sysfs": (139, None),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}


class NoFilter(OSError):
    """No filter is known for this machine."""


def numbers(name: str, machine: str = "") -> int:
    """Number of a system call. Raises NoFilter."""
    number = _NUMBERS[name][_machine(machine).column]
    if number is None:
        raise NoFilter(errno.ENOSYS, f"{name} is not there on this machine")
    return number


def denied(machine: str = "") -> bytes:
    """Filter of calls that are denied behind a fence. Raises NoFilter."""
    kind = _machine(machine)
    no = _answer(errno.EPERM)
    cases = {name: no for name in _NUMBERS}
    # As on a kernel that does not have it: the C library takes the older call then, whose flags
    # can be looked at.
    cases["clone3"] = _answer(errno.ENOSYS)
    cases["clone"] = cases["unshare"] = [*_if_any_bit(0, _NAMESPACES, no), _ALLOWED]
    cases["ioctl"] = [*_unless_equal(1, (_TIOCSTI, _TIOCLINUX), [_ALLOWED]), *no]
    cases["personality"] = [*_unless_equal(0, _PERSONALITIES, no), _ALLOWED]
    cases["socket"] = _sockets()
    for name in ("connect", "sendto", "sendmsg", "sendmmsg", "setsockopt"):
        del cases[name]
    return _program(kind, cases)


def watched(*, gives_sockets: bool, machine: str = "") -> bytes:
    """Filter that asks the network guard before a connection opens. Raises NoFilter.

    One that gives no sockets is asked of each message. Data with the very first packet of a
    connection is refused, as by a kernel that cannot.
    """
    ask: list[Step] = [(_RETURN, 0, 0, _ASK)]
    judge = [_ALLOWED] if gives_sockets else ask
    unsupported = _answer(errno.EOPNOTSUPP)
    is_inet = _unless_equal(0, (_AF_INET, _AF_INET6), [_ALLOWED])
    has_address = [*_argument(4), (_EQUAL, 0, 1, 0), *_argument(4, half=1), (_EQUAL, 0, 1, 0)]
    cases: dict[str, list[Step]] = {
        "connect": ask,
        # Where the address is missing it is a plain `send`: nothing to ask.
        "sendto": [*_if_any_bit(3, _MSG_FASTOPEN, unsupported), *has_address, _ALLOWED, *ask],
        "sendmsg": [*_if_any_bit(2, _MSG_FASTOPEN, unsupported), *judge],
        "sendmmsg": [*_if_any_bit(3, _MSG_FASTOPEN, unsupported), *judge],
        "setsockopt": [
            *_unless_equal(1, (_IPPROTO_TCP,), [_ALLOWED]),
            *_unless_equal(2, _FAST_OPEN, [_ALLOWED]),
            *unsupported,
        ],
    }
    if gives_sockets:
        cases["socket"] = [*is_inet, *ask]
    return _program(_machine(machine), cases)


_ALLOWED: Step = (_RETURN, 0, 0, _ALLOW)


def _machine(name: str) -> _Machine:
    name = name or platform.machine()
    if name not in _MACHINES or sys.maxsize < 2**32:
        raise NoFilter(errno.ENOSYS, f"no filter of system calls is known for {name}")
    return _MACHINES[name]


def _answer(number: int) -> list[Step]:
    return [(_RETURN, 0, 0, _ERROR | number)]


def _argument(index: int, *, half: int = 0) -> list[Step]:
    return [(_LOAD, 0, 0, _ARGUMENTS + index * _ARGUMENT_BYTES + half * 4)]


def _if_any_bit(index: int, bits: int, then: Sequence[Step]) -> list[Step]:
    return [*_argument(index), (_ANY_BIT, 0, len(then), bits), *then]


def _unless_equal(index: int, values: Sequence[int], then: Sequence[Step]) -> list[Step]:
    """Do `then` where an argument is none of the values; go on after it where it is one."""
    last = len(values) - 1
    tests: list[Step] = [
        (_EQUAL, last - index_of_value + len(then), 0, value)
        for index_of_value, value in enumerate(values)
    ]
    return [*_argument(index), *tests, *then]


def _sockets() -> list[Step]:
    """Sockets of the usual families only: of IP TCP, UDP and echoes, of Netlink routes."""
    unsupported = _answer(errno.EPROTONOSUPPORT)
    streams = [*_unless_equal(2, _OF_STREAMS, unsupported), _ALLOWED]
    datagrams = [*_unless_equal(2, _OF_DATAGRAMS, unsupported), _ALLOWED]
    inet: list[Step] = [
        *_argument(1),
        (_AND, 0, 0, _TYPE_MASK),
        (_EQUAL, 0, len(streams), _SOCK_STREAM),
        *streams,
        (_EQUAL, 0, len(datagrams), _SOCK_DGRAM),
        *datagrams,
        (_EQUAL, 0, 1, _SOCK_RAW),
        *_answer(errno.EPERM),
        *unsupported,
    ]
    routes = [*_unless_equal(2, (0,), _answer(errno.EPROTONOSUPPORT)), _ALLOWED]
    return [
        *_unless_equal(0, _FAMILIES, _answer(errno.EAFNOSUPPORT)),
        (_EQUAL, 0, len(routes), _AF_NETLINK),
        *routes,
        (_EQUAL, 0, 1, _AF_UNIX),
        _ALLOWED,
        *inet,
    ]


def _program(machine: _Machine, cases: Mapping[str, Sequence[Step]]) -> bytes:
    numbered = sorted(
        (number, steps)
        for name, steps in cases.items()
        if (number := _NUMBERS[name][machine.column]) is not None
    )
    missing = _answer(errno.ENOSYS)
    steps: list[Step] = [
        (_LOAD, 0, 0, _MACHINE),
        # A program of 32 bits has calls of its own, which nothing here would see.
        (_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        # Those of x32 as well, whose numbers carry a bit above.
        (_FROM, 0, 2, _LAST + 1),
        (_EQUAL, 1, 0, 0xFFFFFFFF),
        *missing,
        *_search(numbered),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _search(cases: Sequence[tuple[int, Sequence[Step]]]) -> list[Step]:
    """Find the case of a number by halves: each call of a payload goes through it."""
    if not cases:
        return [_ALLOWED]
    if len(cases) == 1:
        number, steps = cases[0]
        return [(_EQUAL, 0, len(steps), number), *steps, _ALLOWED]
    middle = len(cases) // 2
    below, above = _search(cases[:middle]), _search(cases[middle:])
    if len(below) <= _LONGEST_JUMP:
        return [(_FROM, len(below), 0, cases[middle][0]), *below, *above]
    return [(_FROM, 0, 1, cases[middle][0]), (_JUMP, 0, 0, len(below)), *below, *above]

"""Filters of system calls as programs, carried out here as the kernel does it."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.pilots.agent.fence import syscall_filter
from wms.pilots.agent.supervisor.denied_addresses import address_in, is_denied
from wms.pilots.agent.supervisor.socket_filter import socket_filter

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL, ASK = "allow", "kill", "ask"
_ANSWERS = {0x7FFF0000: ALLOW, 0x80000000: KILL, 0x7FC00000: ASK}
CALLS = {
    "x86_64": {"unshare": 272, "clone": 56, "clone3": 435, "socket": 41, "ioctl": 16, "read": 0,
               "mount": 165, "keyctl": 250, "io_uring_setup": 425, "connect": 42, "sendto": 44,
               "sendmsg": 46, "setsockopt": 54, "ptrace": 101, "process_vm_readv": 310,
               "personality": 135},
    "aarch64": {"unshare": 97, "clone": 220, "clone3": 435, "socket": 198, "ioctl": 29, "read": 63,
                "mount": 40, "keyctl": 219, "io_uring_setup": 425, "connect": 203, "sendto": 206,
                "sendmsg": 211, "setsockopt": 208, "ptrace": 117, "process_vm_readv": 270,
                "personality": 92},
}  # fmt: skip


def carried_out(program: bytes, load: object) -> int:
    """What a program of the packet filter returns."""
    steps = list(struct.iter_unpack("=HBBI", program))
    place = accumulator = 0
    while True:
        code, if_true, if_false, value = steps[place]
        place += 1
        if code == 0x06:
            return value
        if code == 0x05:
            place += value
        elif code in (0x20, 0x28, 0x30):
            accumulator = load(value, {0x20: 4, 0x28: 2, 0x30: 1}[code])  # type: ignore[operator]
        elif code == 0x54:
            accumulator &= value
        elif code == 0x74:
            accumulator >>= value
        else:
            is_true = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }[code]
            place += if_true if is_true else if_false


def answer(program: bytes, audit: int, number: int, *arguments: int) -> str:
    words = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number, audit, 0, *words)
    found = carried_out(program, lambda at, size: int.from_bytes(data[at : at + size], "little"))
    return _ANSWERS.get(found) or errno.errorcode[found & 0xFFFF]


@pytest.mark.parametrize("machine", sorted(AUDIT))
@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        ("read", (0,), ALLOW),
        ("ptrace", (16, 1), ALLOW),
        ("process_vm_readv", (1,), ALLOW),
        ("mount", (), "EPERM"),
        ("keyctl", (), "EPERM"),
        ("io_uring_setup", (), "EPERM"),
        ("clone3", (), "ENOSYS"),
        ("clone", (0x3D0F00,), ALLOW),
        ("clone", (0x11,), ALLOW),
        ("clone", (0x10000011,), "EPERM"),
        ("clone", (0xFFFFFFFF_10000011,), "EPERM"),
        ("unshare", (0x400,), ALLOW),
        ("unshare", (0x40000000,), "EPERM"),
        ("ioctl", (0, 0x5401), ALLOW),
        ("ioctl", (0, 0x5412), "EPERM"),
        ("ioctl", (0, 0xFF_00005412), "EPERM"),
        ("personality", (0xFFFFFFFF,), ALLOW),
        ("personality", (0x400000,), "EPERM"),
        ("socket", (1, 5, 0), ALLOW),
        ("socket", (2, 0x80801, 6), ALLOW),
        ("socket", (10, 2, 58), ALLOW),
        ("socket", (2, 3, 1), "EPERM"),
        ("socket", (2, 1, 262), "EPROTONOSUPPORT"),
        ("socket", (2, 5, 132), "EPROTONOSUPPORT"),
        ("socket", (16, 3, 0), ALLOW),
        ("socket", (16, 3, 9), "EPROTONOSUPPORT"),
        ("socket", (17, 3, 0), "EAFNOSUPPORT"),
        ("socket", (40, 1, 0), "EAFNOSUPPORT"),
    ],
)
def test_a_call_is_denied_or_not(
    machine: str, call: str, arguments: tuple[int, ...], expected: str
) -> None:
    program = syscall_filter.denied(machine)

    assert answer(program, AUDIT[machine], CALLS[machine][call], *arguments) == expected


@pytest.mark.parametrize("gives_sockets", [True, False])
@pytest.mark.parametrize("machine", sorted(AUDIT))
def test_the_guard_is_asked_of_what_opens_a_way(machine: str, gives_sockets: bool) -> None:
    program = syscall_filter.watched(gives_sockets=gives_sockets, machine=machine)

    def asked(call: str, *arguments: int) -> str:
        return answer(program, AUDIT[machine], CALLS[machine][call], *arguments)

    assert asked("socket", 2, 1, 0) == (ASK if gives_sockets else ALLOW)
    assert asked("socket", 1, 1, 0) == ALLOW
    assert asked("connect", 3, 1, 16) == ASK
    assert asked("sendto", 3, 1, 1, 0, 0, 0) == ALLOW
    assert asked("sendto", 3, 1, 1, 0, 1 << 40, 16) == ASK
    assert asked("sendto", 3, 1, 1, 0x20000000, 0, 0) == errno.errorcode[errno.EOPNOTSUPP]
    assert asked("sendmsg", 3, 1, 0) == (ALLOW if gives_sockets else ASK)
    assert asked("sendmsg", 3, 1, 0x20000000) == errno.errorcode[errno.EOPNOTSUPP]
    assert (
        asked("setsockopt", 3, 6, 30)
        == asked("setsockopt", 3, 6, 34)
        == errno.errorcode[errno.EOPNOTSUPP]
    )
    assert asked("setsockopt", 3, 6, 1) == asked("setsockopt", 3, 1, 30) == ALLOW


@pytest.mark.parametrize("machine", sorted(AUDIT))
def test_calls_of_other_machines_and_of_newer_kernels_are_none(machine: str) -> None:
    program = syscall_filter.denied(machine)
    other = next(audit for name, audit in AUDIT.items() if name != machine)

    assert answer(program, other, 0) == answer(program, 0x40000003, 20) == KILL
    assert answer(program, AUDIT[machine], 470) == "ENOSYS"
    assert answer(program, AUDIT[machine], 0x40000000 | 1) == "ENOSYS"
    # Another program that looks at calls has taken this one out.
    assert answer(program, AUDIT[machine], 0xFFFFFFFF) == ALLOW


def test_no_filter_is_made_up_for_a_machine_that_is_not_known() -> None:
    with pytest.raises(syscall_filter.NoFilter, match="vax"):
        syscall_filter.denied("vax")


def packet(sender: bytes, port: int) -> tuple[bytes, bytes]:
    """The head of the network and what comes after it."""
    if len(sender) == 4:
        return bytes([0x45]) + bytes(11) + sender + bytes(4), port.to_bytes(2, "big")
    return bytes([0x60]) + bytes(7) + sender + bytes(16), port.to_bytes(2, "big")


def is_let_in(program: bytes, sender: bytes, port: int) -> bool:
    head, rest = packet(sender, port)

    def load(at: int, size: int) -> int:
        source, start = (head, at - 0xFFF00000) if at >= 0xFFF00000 else (rest, at)
        return int.from_bytes(source[start : start + size], "big")

    return carried_out(program, load) != 0


_ADDRESSES = st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16)
_LINK = st.builds(lambda rest: b"\xa9\xfe" + rest, st.binary(min_size=2, max_size=2))
_LINK_6 = st.builds(lambda rest: b"\xfe\x80" + rest, st.binary(min_size=14, max_size=14))


@given(_ADDRESSES | _LINK | _LINK_6, st.sampled_from([53, 80]))
def test_a_socket_lets_in_what_is_not_denied(sender: bytes, port: int) -> None:
    assert is_let_in(socket_filter(()), sender, port) is not is_denied(sender)


def test_servers_of_names_may_answer_from_denied_addresses() -> None:
    google, other = b"\xa9\xfe\xa9\xfe", b"\xa9\xfe\x00\x01"
    program = socket_filter([google])

    assert is_let_in(program, google, 53)
    assert not is_let_in(program, google, 80)
    assert not is_let_in(program, other, 53)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0200 0050 a9fea9fe 0000000000000000", True),
        ("0200 0050 7f000001 0000000000000000", False),
        ("0a00 0050 00000000 00000000000000000000ffffa9fea9fe 00000000", True),
        ("0a00 0050 00000000 fe800000000000000000000000000001 01000000", True),
        ("0a00 0050 00000000 fd000ec2000000000000000000000254 00000000", True),
        ("0a00 0050 00000000 20010db8000000000000000000000001 00000000", False),
        ("0100 2f", False),
        ("", False),
    ],
)
def test_an_address_is_read_as_the_kernel_writes_it(text: str, expected: bool) -> None:
    address, _ = address_in(bytes.fromhex(text))

    assert is_denied(address) is expected

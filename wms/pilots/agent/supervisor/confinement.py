"""Confinement of a process before it becomes a payload or a script; it cannot be undone.

Own keys, own network, another account, no capabilities, filters of system calls, Landlock. Done in
the supervisor's child before the fence is set up; behind fences that are programs of others it is
the first program inside, with its order on its standard input. Descriptors for the network guard
and the portal relay go to the supervisor through a socket. Also applied to scripts of DAG nodes.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import marshal
import os
import resource
import socket
import struct
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Names of the descriptors that are sent to the supervisor, and what says without one that this
#: process is confined and goes on.
GUARD, RELAY, READY = b"guard", b"relay", b"ready"

PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 24, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_MOST_CAPABILITIES = 64
_CAPABILITIES_V3 = 0x20080522
_KEYCTL_JOIN_SESSION_KEYRING = 1
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SECCOMP_SET_MODE_FILTER = 1
# Without the second, older kernels make all programs behind a filter slower.
_NEW_LISTENER, _SPEC_ALLOW = 1 << 3, 1 << 2
_SECCOMP_IOCTL_NOTIF_ADDFD = 0x40182103
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT, _LANDLOCK_VERSION = 444, 446, 1
_SCOPES_SINCE = 6
_SCOPED, _CONNECT_TCP = 0b11, 0b10
#: Since then it keeps processes from connections of TCP.
CONNECTS_SINCE = 4
_SIOCSIFFLAGS, _SIOCSIFADDR, _IFF_UP_AND_RUNNING = 0x8914, 0x8916, 0x41
_LO_INDEX = 1
_BACKLOG = 64
#: Numbers of system calls: seccomp, keyctl, capset.
_CALLS = {"x86_64": (317, 250, 126), "aarch64": (277, 219, 91)}

_libc = ctypes.CDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def main() -> None:
    """Read an order, confine this process, become the shell or program that the order is for."""
    try:
        channel = socket.socket(fileno=0)
        order = marshal.loads(_received(channel, int(_received(channel, 8), 16)))
        confine(order, channel)
        channel.sendall(READY)
        if order["program"] is not None:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            _become_program(order["program"])
        os.dup2(memory_file(order["stdin"].encode(errors="surrogateescape")), 0)
        os.execve("/bin/sh", ["/bin/sh", "-s"], dict(os.environ))
    except (OSError, EOFError, ValueError) as error:
        sys.exit(f"the way behind the fence: {error}")


def _become_program(program: dict[str, Any]) -> None:
    """Become a program with exactly its environment, in its directory."""
    if program["processes"] is not None:
        most = int(program["processes"])
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    os.chdir(program["directory"])
    os.umask(0o022)
    argv = program["argv"]
    try:
        os.execve(argv[0], argv, program["environment"])
    except FileNotFoundError:
        # As shells do it.
        sys.stderr.write(f"{argv[0]}: not found, or an interpreter that it needs is not\n")
        sys.exit(127)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{argv[0]}: {error}\n")
        sys.exit(126)


def _have_own_keys() -> None:
    try:
        _call(_calls()[1], _KEYCTL_JOIN_SESSION_KEYRING, None)
    except OSError as error:
        # In most containers nobody can get at keys, as in kernels without them.
        if error.errno not in (errno.EPERM, errno.ENOSYS):
            raise


def _received(channel: socket.socket, length: int) -> bytes:
    content = b""
    while len(content) < length:
        piece = channel.recv(length - len(content))
        if not piece:
            raise EOFError("its order did not come")
        content += piece
    return content


def memory_file(content: bytes) -> int:
    """File of this content in memory, without a name, read from its beginning."""
    descriptor = os.memfd_create("order")
    while content:
        content = content[os.write(descriptor, content) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def confine(order: dict[str, Any], channel: socket.socket | None = None) -> None:
    """Confine this process as an order asks. Raises OSError; then no payload may be started here.

    With an order for a guard or a relay there must be a channel to the supervisor.
    """
    if order["has_own_keys"]:
        _have_own_keys()
    if order["has_own_network"]:
        _leave_network()
        for index, (host, port) in enumerate(order["listens_at"]):
            _send(channel, RELAY, _listening(host, port, index).detach())
    _give_up_rights(order)
    if order["watched"] or order["denied"]:
        prctl(_PR_SET_NO_NEW_PRIVS, 1)
        _close_to_others(may_connect=order["may_connect"])
    if order["watched"]:
        _call_guard(channel, order["watched"])
    if order["denied"]:
        _install(order["denied"], _SPEC_ALLOW)


def _call(number: int, *arguments: object) -> int:
    # ctypes takes a plain number for an int of 32 bits.
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _calls() -> tuple[int, int, int]:
    machine = os.uname().machine
    if machine not in _CALLS:
        raise OSError(0, f"the system calls of {machine} are not known")
    return _CALLS[machine]


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process. Raises OSError."""
    words = [ctypes.c_ulong(each) for each in (value, 0, 0, 0)]
    if _libc.prctl(option, *words):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _send(channel: socket.socket | None, name: bytes, descriptor: int) -> None:
    """Send a descriptor to the supervisor and close it here."""
    assert channel is not None
    socket.send_fds(channel, [name], [descriptor])
    os.close(descriptor)


def _install(steps: bytes, flags: int) -> int:
    """Install a seccomp filter for later system calls; return a descriptor if flags ask for one."""
    program = _Filter(len(steps) // 8, steps)
    return _call(_calls()[0], _SECCOMP_SET_MODE_FILTER, flags, ctypes.byref(program))


def _call_guard(channel: socket.socket | None, steps: bytes) -> None:
    """Install the filter of calls that ask the network guard, and send its descriptor.

    By a thread that is older, and so not behind the filter: nobody answers yet if it asks.
    """
    listeners: list[int] = []
    is_over = threading.Event()

    def send() -> None:
        is_over.wait()
        for listener in listeners:
            _send(channel, GUARD, listener)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        listener = _install(steps, _NEW_LISTENER | _SPEC_ALLOW)
        _check_answers(listener)
        listeners.append(listener)
    finally:
        is_over.set()
        sender.join()


def _check_answers(listener: int) -> None:
    """Raise OSError where the kernel cannot pass sockets in an answer: before Linux 5.9."""
    try:
        fcntl.ioctl(listener, _SECCOMP_IOCTL_NOTIF_ADDFD, struct.pack("=QIIII", 0, 0, 0, 0, 0))
    except OSError as error:
        # There is no question yet.
        if error.errno != errno.ENOENT:
            raise


def empty_bounding_set() -> None:
    """Empty the bounding set: no program started from now on gets capabilities."""
    for number in range(_MOST_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, *map(ctypes.c_ulong, (number, 0, 0, 0)))


def _give_up_rights(order: dict[str, Any]) -> None:
    if order["account"] is not None:
        _change_account(order["account"])
    if order["has_no_capabilities"]:
        _drop_capabilities()


def _change_account(number: int) -> None:
    empty_bounding_set()
    os.setgroups([])
    os.setresgid(number, number, number)
    os.setresuid(number, number, number)


def _drop_capabilities() -> None:
    """Drop all capabilities for good."""
    empty_bounding_set()
    _libc.prctl(_PR_CAP_AMBIENT, *map(ctypes.c_ulong, (_PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)))
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITIES_V3, 0))
    _call(_calls()[2], header, ctypes.create_string_buffer(24))


def landlock_version() -> int:
    """Version of Landlock in the kernel; below 1, it has none."""
    version: int = _libc.syscall(
        ctypes.c_long(_LANDLOCK_CREATE), None, ctypes.c_long(0), ctypes.c_long(_LANDLOCK_VERSION)
    )
    return version


def _close_to_others(*, may_connect: bool) -> None:
    """Restrict sockets by name and signals to the payload's own, where Landlock can (Linux 6.12).

    A process that may not connect needs a guard that does it.
    """
    version = landlock_version()
    scoped = _SCOPED if version >= _SCOPES_SINCE else 0
    connecting = 0 if may_connect else _CONNECT_TCP
    if not (scoped or connecting):
        return
    rules = struct.pack("=QQQ", 0, connecting, scoped)[: 24 if scoped else 16]
    ruleset = _call(_LANDLOCK_CREATE, ctypes.create_string_buffer(rules), len(rules), 0)
    _call(_LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _leave_network() -> None:
    """Enter an empty network namespace with a loopback device."""
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        _unshare(_CLONE_NEWNET)
    else:
        _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        request = struct.pack("16sH22x", b"lo", _IFF_UP_AND_RUNNING)
        fcntl.ioctl(device, _SIOCSIFFLAGS, request)


def _unshare(flags: int) -> None:
    if _libc.unshare(flags):
        number = ctypes.get_errno()
        raise OSError(number, f"no network of its own can be made: {os.strerror(number)}")


def _listening(host: str, port: int, index: int) -> socket.socket:
    """Listening socket at an address of another host, which this network takes for its own."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    packed = socket.inet_pton(family, host)
    with socket.socket(family, socket.SOCK_DGRAM) as device:
        if family == socket.AF_INET6 and packed != socket.inet_pton(family, "::1"):
            fcntl.ioctl(device, _SIOCSIFADDR, struct.pack("=16sIi", packed, 128, _LO_INDEX))
        elif family == socket.AF_INET and packed[0] != 127:
            address = struct.pack("=H2x4s8x", socket.AF_INET, packed)
            fcntl.ioctl(device, _SIOCSIFADDR, struct.pack("16s16s8x", b"lo:%d" % index, address))
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind((host, port))
    listener.listen(_BACKLOG)
    return listener

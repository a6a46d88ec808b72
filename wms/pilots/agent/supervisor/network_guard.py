"""Network guard: keeps a payload from link-local addresses and clouds' metadata services.

A thread of the supervisor, which the kernel asks of the payload's calls (see
`syscall_filter.watched`). An attempt to reach such an address is refused at once. A payload that
changes an address after the guard's check is kept away by one of two methods:

`FILTERS`: sockets are made here, and each has a filter of its own that lets in nothing from there.
A datagram may get out, but no answer comes in. It costs no call of those that send or receive.

`CONNECTS`: the kernel lets the payload open no connection of TCP; that is done here, to the address
that was checked. Datagrams are checked as they are sent.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import threading

from . import socket_filter
from .denied_addresses import DNS_PORT, address_in, is_denied, name_servers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FILTERS, CONNECTS = "filters", "connects"

_RECEIVE, _ANSWER, _ADD = 0xC0502100, 0xC0182101, 0x40182103
_QUESTION = struct.Struct("=QIIiIQ6Q")
_QUESTION_BYTES = 80
_GO_ON = 1
_TYPE_MASK = 0xF
_LONGEST_ADDRESS = 28
# A message: where its address is, and how long; of several, one is so many bytes after the other.
_MESSAGE = struct.Struct("=QI")
_MESSAGE_BYTES = 64
_MOST_MESSAGES = 1024
_PIDFD_OPEN, _PIDFD_GETFD, _PIDFD_THREAD = 434, 438, os.O_EXCL
_MOST_CONNECTING = 256
#: Numbers of system calls on a machine.
_CALLS = {
    "x86_64": {41: "socket", 42: "connect", 44: "sendto", 46: "sendmsg", 307: "sendmmsg"},
    "aarch64": {198: "socket", 203: "connect", 206: "sendto", 211: "sendmsg", 269: "sendmmsg"},
}
#: setfsgid and setfsuid.
_FS_CALLS = {"x86_64": (123, 122), "aarch64": (152, 151)}

_libc = ctypes.CDLL(None, use_errno=True)


class NetworkGuard:
    """Answers the kernel's questions about one payload's calls until its processes are gone."""

    def __init__(self, listener: int, method: str, uid: int | None) -> None:
        """`uid` is the payload's account, where root keeps it: its sockets are to be its own."""
        self._listener = listener
        self._method = method
        self._uid = uid
        self._calls = _CALLS[os.uname().machine]
        self._name_servers = name_servers()
        self._steps = socket_filter.socket_filter(self._name_servers)
        self._connecting_slots = threading.BoundedSemaphore(_MOST_CONNECTING)

    def begin(self) -> None:
        """Run in a thread until no process is left that may ask."""
        threading.Thread(target=self._answer_all, daemon=True).start()

    def _answer_all(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        try:
            self._become_owner()
            ready = select.poll()
            ready.register(self._listener, select.POLLIN)
            while not ready.poll()[0][1] & select.POLLHUP:
                self._answer_one()
        finally:
            # Without a guard the calls it is asked of fail, and do not wait for ever.
            os.close(self._listener)

    def _become_owner(self) -> None:
        """Let this thread alone make files under the payload's account."""
        if self._uid is not None:
            for number in _FS_CALLS[os.uname().machine]:
                _libc.syscall(ctypes.c_long(number), ctypes.c_long(self._uid))

    def _answer_one(self) -> None:
        question = bytearray(_QUESTION_BYTES)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, question)
        except OSError:
            # Who asked was killed in the meantime.
            return
        key, pid, _, number, _, _, *words = _QUESTION.unpack(question)
        name = self._calls[number]
        try:
            if name == "socket":
                self._tell(key, self._give_socket(key, *words[:3]), 0, 0)
                return
            denied, connects = self._check(pid, name, words)
            if denied:
                self._tell(key, 0, -errno.EACCES, 0)
            elif connects:
                self._connect(key, pid, words[0] & 0xFFFFFFFF, connects)
            else:
                self._tell(key, 0, 0, _GO_ON)
        except OSError as error:
            self._tell(key, 0, -(error.errno or errno.EACCES), 0)

    def _tell(self, key: int, value: int, error: int, flags: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._listener, _ANSWER, struct.pack("=QqiI", key, value, error, flags))

    def _give_socket(self, key: int, family: int, kind: int, protocol: int) -> int:
        """Make a socket for the process that asks; return its number there."""
        family, protocol = family & 0xFFFFFFFF, protocol & 0xFFFFFFFF
        with socket.socket(family, kind & _TYPE_MASK, protocol) as made:
            socket_filter.put_on(made, self._steps)
            made.setblocking(not kind & socket.SOCK_NONBLOCK)
            flags = os.O_CLOEXEC if kind & socket.SOCK_CLOEXEC else 0
            # Only of what can be changed the answer comes as a number.
            request = bytearray(struct.pack("=QIIII", key, 0, made.fileno(), 0, flags))
            number: int = fcntl.ioctl(self._listener, _ADD, request)
            return number

    def _check(self, pid: int, name: str, words: Sequence[int]) -> tuple[bool, bytes]:
        """Whether a call is denied, and the address to which a connection is made from here.

        Memory that cannot be read is of no payload that the guard's connections are for.
        """
        try:
            memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        except OSError:
            return self._method == CONNECTS, b""
        try:
            addresses = [
                os.pread(memory, min(length, _LONGEST_ADDRESS), offset) if offset else b""
                for offset, length in _addresses(memory, name, words)
            ]
        except (OSError, OverflowError, ValueError, struct.error):
            # The kernel says of such an address what is wrong with it.
            return False, b""
        finally:
            os.close(memory)
        denied = any(self._is_denied(*address_in(each)) for each in addresses)
        is_here = self._method == CONNECTS and name == "connect" and address_in(addresses[0])[0]
        return denied, addresses[0] if is_here else b""

    def _is_denied(self, address: bytes, port: int) -> bool:
        is_name_server = port == DNS_PORT and address in self._name_servers
        return not is_name_server and is_denied(address)

    def _connect(self, key: int, pid: int, number: int, address: bytes) -> None:
        """Connect a socket of another process, in a thread: it may take long."""
        descriptor = _copy_of(pid, number)
        if not self._connecting_slots.acquire(blocking=False):
            os.close(descriptor)
            raise OSError(errno.EAGAIN, "")

        def connect() -> None:
            try:
                while _libc.connect(descriptor, address, len(address)):
                    if ctypes.get_errno() != errno.EINTR:
                        self._tell(key, 0, -ctypes.get_errno(), 0)
                        return
                self._tell(key, 0, 0, 0)
            finally:
                os.close(descriptor)
                self._connecting_slots.release()

        threading.Thread(target=connect, daemon=True).start()


def _addresses(memory: int, name: str, words: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Places and lengths of the addresses of a call in a process's memory."""
    if name == "connect":
        yield words[1], words[2] & 0xFFFFFFFF
    elif name == "sendto":
        yield words[4], words[5] & 0xFFFFFFFF
    else:
        number = min(words[2] & 0xFFFFFFFF, _MOST_MESSAGES) if name == "sendmmsg" else 1
        for index in range(number):
            head = os.pread(memory, _MESSAGE.size, words[1] + index * _MESSAGE_BYTES)
            yield _MESSAGE.unpack(head)


def _copy_of(pid: int, number: int) -> int:
    """Copy of a descriptor of another process, or of one of its threads. Raises OSError."""
    try:
        handle = _call(_PIDFD_OPEN, pid, _PIDFD_THREAD)
    except OSError:
        # Before Linux 6.9: of the whole process only.
        handle = _call(_PIDFD_OPEN, _process_of(pid), 0)
    try:
        return _call(_PIDFD_GETFD, handle, number, 0)
    finally:
        os.close(handle)


def _process_of(thread: int) -> int:
    with open(f"/proc/{thread}/status", encoding="utf-8", errors="replace") as lines:
        return next((int(line.split()[1]) for line in lines if line.startswith("Tgid:")), thread)


def _call(number: int, *words: int) -> int:
    result: int = _libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, words))
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result

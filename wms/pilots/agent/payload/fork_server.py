"""Fork server: a small process that forks a supervisor for each payload.

To start an interpreter for each payload takes more time than a short payload itself.
"""

from __future__ import annotations

import contextlib
import logging
import marshal
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from ..inline_program import program_of

_ANSWER_BYTES = 64
_MODULES = (
    "confinement",
    "denied_addresses",
    "socket_filter",
    "network_guard",
    "portal_relay",
    "launch",
    "main",
)
#: Seconds without an answer after which the fork server is replaced: somebody has stopped it.
ANSWERS_WITHIN_S = 60.0

log = logging.getLogger("pilot")


class _Lost(OSError):
    """The fork server was killed, or does not answer."""


@dataclass(frozen=True)
class Supervisor:
    """Supervisor process of one payload: pipes for orders and answers."""

    pid: int
    orders: BinaryIO
    answers: BinaryIO


class ForkServer:
    """Gives supervisors to all threads of the pilot; its process begins with the first one.

    It ends with the pilot; supervisors see by their own pipes that the pilot is gone. One that was
    killed or stopped is replaced.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def supervisor(self, descriptors: Sequence[int]) -> Supervisor:
        """A new supervisor that has these descriptors under the same numbers. Raises OSError."""
        with self._lock:
            try:
                return self._ask_for(descriptors)
            except _Lost as error:
                log.warning("what starts payloads is started again: %s", error)
                return self._ask_for(descriptors)

    def _ask_for(self, descriptors: Sequence[int]) -> Supervisor:
        """Ask once. Each time with other pipes: a lost server may have forked a supervisor."""
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            orders, written = os.pipe()
            theirs.callback(os.close, orders)
            ours.callback(os.close, written)
            read, answers = os.pipe()
            theirs.callback(os.close, answers)
            ours.callback(os.close, read)
            pid = self._ask([orders, answers, *descriptors], [0, 1, *descriptors])
            ours.pop_all()
        return Supervisor(pid, os.fdopen(written, "wb"), os.fdopen(read, "rb"))

    def _ask(self, descriptors: Sequence[int], numbers: Sequence[int]) -> int:
        """Fork a process that knows these descriptors by these numbers; return its number."""
        try:
            answer = self._exchange(marshal.dumps(list(numbers)), descriptors)
        except OSError as error:
            self._discard()
            raise _Lost(error.errno, str(error)) from error
        if not answer:
            self._discard()
            raise _Lost("the process that starts payloads has ended")
        pid = int(marshal.loads(answer))
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return pid

    def _exchange(self, request: bytes, descriptors: Sequence[int]) -> bytes:
        if self._requests is None:
            self._begin()
        assert self._requests is not None
        socket.send_fds(self._requests, [request], descriptors)
        return self._requests.recv(_ANSWER_BYTES)

    def _begin(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with contextlib.ExitStack() as unless_begun, theirs:
            unless_begun.callback(ours.close)
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    "-c",
                    program_of(*(f"supervisor.{name}" for name in _MODULES)),
                ],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                start_new_session=True,
            )
            unless_begun.pop_all()
        ours.settimeout(ANSWERS_WITHIN_S)
        self._requests = ours

    def _discard(self) -> None:
        """Discard a fork server that does not answer any more."""
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.kill()
            self._process.wait()
            self._process = None

"""Where the keepers of payloads come from: a small process that forks one whenever it is asked.

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
#: A process that does not answer for so long was stopped by somebody: it is replaced.
ANSWERS_WITHIN_S = 60.0

log = logging.getLogger("pilot")


class _Lost(OSError):
    """The process that starts payloads was killed, or does not answer."""


@dataclass(frozen=True)
class Keeper:
    """A process that keeps one payload: where it hears what to do, and where it tells."""

    pid: int
    orders: BinaryIO
    answers: BinaryIO


class Nursery:
    """Gives keepers to all threads of the pilot. Its process begins with the first one.

    The nursery's process ends with the pilot's; keepers see by their own pipes that the pilot is
    gone. One that was killed or stopped is replaced.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def keeper(self, descriptors: Sequence[int]) -> Keeper:
        """A new keeper that has these descriptors under the same numbers. Raises OSError."""
        with self._lock:
            try:
                return self._ask_for(descriptors)
            except _Lost as error:
                log.warning("what starts payloads is started again: %s", error)
                return self._ask_for(descriptors)

    def _ask_for(self, descriptors: Sequence[int]) -> Keeper:
        """Ask once. Each time with other pipes: whom we asked in vain may have forked a keeper."""
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            orders, written = os.pipe()
            theirs.callback(os.close, orders)
            ours.callback(os.close, written)
            read, answers = os.pipe()
            theirs.callback(os.close, answers)
            ours.callback(os.close, read)
            pid = self._ask([orders, answers, *descriptors], [0, 1, *descriptors])
            ours.pop_all()
        return Keeper(pid, os.fdopen(written, "wb"), os.fdopen(read, "rb"))

    def _ask(self, descriptors: Sequence[int], numbers: Sequence[int]) -> int:
        """Have a process forked that knows these descriptors by these numbers; return its own."""
        try:
            answer = self._exchange(marshal.dumps(list(numbers)), descriptors)
        except OSError as error:
            self._bury()
            raise _Lost(error.errno, str(error)) from error
        if not answer:
            self._bury()
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

    def _bury(self) -> None:
        """Let go of a process that does not answer any more."""
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.kill()
            self._process.wait()
            self._process = None

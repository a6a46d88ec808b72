"""Where the keepers of payloads come from: a small process that forks one whenever it is asked.

To start an interpreter for each payload takes more time than a short payload itself.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import os
import pkgutil
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

_ANSWER_BYTES = 64


@dataclass(frozen=True)
class Keeper:
    """A process that keeps one payload: where it hears what to do, and where it tells."""

    pid: int
    orders: BinaryIO
    answers: BinaryIO


class Nursery:
    """Gives keepers to all threads of the pilot. Its process begins with the first one.

    The nursery's process ends with the pilot's; keepers see by their own pipes that the pilot is
    gone. One that was killed is replaced.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def keeper(self, descriptors: Sequence[int]) -> Keeper:
        """A new keeper that has these descriptors under the same numbers. Raises OSError."""
        orders, written = os.pipe()
        read, answers = os.pipe()
        try:
            pid = self._ask([orders, answers, *descriptors], [0, 1, *descriptors])
        except OSError:
            os.close(written)
            os.close(read)
            raise
        finally:
            os.close(orders)
            os.close(answers)
        return Keeper(pid, os.fdopen(written, "wb"), os.fdopen(read, "rb"))

    def _ask(self, descriptors: Sequence[int], numbers: Sequence[int]) -> int:
        """Have a process forked that knows these descriptors by these numbers; return its own."""
        request = marshal.dumps(list(numbers))
        with self._lock:
            try:
                answer = self._exchange(request, descriptors)
            except OSError:
                answer = b""
            if not answer:
                self._bury()
                answer = self._exchange(request, descriptors)
        if not answer:
            raise OSError("the process that starts payloads ended at once")
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
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _program()],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                start_new_session=True,
            )
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


@functools.cache
def _program() -> str:
    content = pkgutil.get_data(__package__, "fence_keeper.py")
    if content is None:
        raise OSError("the pilot's own file fence_keeper.py cannot be read")
    return content.decode()

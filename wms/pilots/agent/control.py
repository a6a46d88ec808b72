"""What the outside wants of the pilot, and how its threads learn of it without polling."""

from __future__ import annotations

import contextlib
import math
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator

#: From a termination signal to the last message; batch systems kill soon after asking.
GOODBYE_S = 6.0

Attempt = tuple[int, int]


class Bell:
    """Wakes one waiting thread; safe to ring from a signal handler, which no lock is."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def ring(self) -> None:
        """Wake the waiting thread now, or the next one at once."""
        try:
            os.write(self._writer, b"!")
        except BlockingIOError:
            return  # full of rings that nobody has heard yet

    def wait(self, timeout_s: float | None) -> None:
        """Return after a ring or when the time is over."""
        # Not select(): that fails once a pilot of very many jobs has more than 1023 files open.
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        if poll.poll(None if timeout_s is None else _milliseconds(timeout_s)):
            os.read(self._reader, 4096)


def _milliseconds(seconds: float) -> int:
    """What the kernel can be told to wait; after the longest of them callers look again."""
    return max(0, math.ceil(min(seconds, 1e6) * 1000))


class Control:
    """The wishes of signal handlers, heartbeats and server answers; all threads obey them.

    Wishes are only ever added, so plain attributes need no lock. `bell` is the main thread's; each
    attempt at hand has one of its own, since a ring wakes one thread only.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.bell = Bell()
        self.clock = clock
        self.terminated_at: float | None = None
        self.is_preempted = False
        self.is_draining = False
        self.is_sent_off = False
        self.drain_reason = ""
        self.is_locked_out = False
        self._killed: dict[Attempt, str] = {}
        self._peeked: set[Attempt] = set()
        # Replaced and never changed: a signal handler reads it at any moment, without a lock.
        self._bells: dict[Attempt, Bell] = {}
        self._standing: tuple[Bell, ...] = ()
        # Used again and never closed: who rings late must not write into another's file.
        self._spare: list[Bell] = []
        self._lock = threading.Lock()
        self._line: socket.socket | None = None

    @property
    def wants_end(self) -> bool:
        """True once the pilot is to take no more jobs."""
        return self.is_terminated or self.is_draining or self.is_locked_out

    @contextlib.contextmanager
    def line(self, connection: socket.socket) -> Iterator[None]:
        """While the block waits for an answer on this connection, a wish to end cuts it off."""
        self._line = connection
        if self.wants_end:
            self._cut_line()
        try:
            yield
        finally:
            self._line = None

    @property
    def is_terminated(self) -> bool:
        """True once somebody on this node asked the pilot to end."""
        return self.terminated_at is not None

    def terminate(self) -> None:
        """End soon: called by the signal handler."""
        if self.terminated_at is None:
            self.terminated_at = self.clock()
        self._ring_all()

    def preempt(self) -> None:
        """The batch system wants the slot back: end soon, and let others run what is not done."""
        self.is_preempted = True
        self.terminate()

    def drain(self, reason: str = "") -> None:
        """End after the jobs at hand; of several reasons the first one counts."""
        self.drain_reason = self.drain_reason or reason
        self.is_draining = True
        self._ring_all()

    def send_off(self, reason: str) -> None:
        """Somebody told the server to drain the pilot: it keeps no slot of an unfit node either."""
        self.is_sent_off = True
        self.drain(reason)

    def lock_out(self) -> None:
        """The server no longer knows this pilot: end at once, without a word to it."""
        self.is_locked_out = True
        self._ring_all()

    def kill(self, attempt: Attempt, reason: str = "") -> None:
        """Stop this attempt of a job if it still runs."""
        self._killed.setdefault(attempt, reason)
        self._ring_all()

    def is_killed(self, attempt: Attempt) -> bool:
        """Tell whether somebody asked to stop this attempt."""
        return attempt in self._killed

    def kill_reason(self, attempt: Attempt) -> str:
        """Why this attempt is to be stopped, in the words of who asked; may be empty."""
        return self._killed.get(attempt, "")

    def peek(self, attempt: Attempt) -> None:
        """Send what this attempt has printed up to now, without waiting for the usual moment."""
        self._peeked.add(attempt)
        bell = self._bells.get(attempt)
        if bell is not None:
            bell.ring()

    def takes_peek(self, attempt: Attempt) -> bool:
        """Tell whether somebody wants to see this attempt's output now; asking takes the wish."""
        if attempt not in self._peeked:
            return False
        self._peeked.discard(attempt)
        return True

    def hold(self, attempt: Attempt) -> Bell:
        """Note an attempt at hand, for the heartbeats; return the bell of the thread that runs it.

        It may ring for no reason.
        """
        with self._lock:
            bell = self._spare.pop() if self._spare else Bell()
            self._bells = {**self._bells, attempt: bell}
            return bell

    def release(self, attempt: Attempt) -> None:
        """The attempt is over; the main thread is told."""
        with self._lock:
            bells = dict(self._bells)
            self._spare.append(bells.pop(attempt))
            self._bells = bells
        self.bell.ring()

    def new_bell(self) -> Bell:
        """A bell for one more thread that lives as long as the pilot; it rings for every wish."""
        bell = Bell()
        with self._lock:
            self._standing = (*self._standing, bell)
        return bell

    def held(self) -> list[Attempt]:
        """Return the attempts at hand."""
        return list(self._bells)

    def give_up_at(self, started: float, patience_s: float) -> float:
        """Return when to stop trying to reach the server: soon, once the pilot is terminated."""
        limit = started + patience_s
        if self.terminated_at is None:
            return limit
        return min(limit, self.terminated_at + GOODBYE_S)

    def _cut_line(self) -> None:
        line = self._line
        if line is not None:
            with contextlib.suppress(OSError):
                # Beside TLS, whose own state is the reading thread's.
                socket.socket.shutdown(line, socket.SHUT_RDWR)

    def _ring_all(self) -> None:
        if self.wants_end:
            self._cut_line()
        self.bell.ring()
        for bell in (*self._standing, *self._bells.values()):
            bell.ring()

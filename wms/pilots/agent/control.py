"""Requests to the pilot to stop, drain, kill or peek, shared by all of its threads.

They come from signals, heartbeats and answers. Also the attempts at hand, and the waker, which ends
a thread's wait.
"""

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
#: Longest wait for the main thread to handle the signals that have come; it may look up an address.
_HANDLED_S = 2.0

Attempt = tuple[int, int]


class Waker:
    """Self-pipe that wakes one waiting thread; a signal handler may use it, as it takes no lock."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def wake(self) -> None:
        """Wake the waiting thread now, or the next one that waits at once."""
        try:
            os.write(self._writer, b"!")
        except BlockingIOError:
            return  # full of rings that nobody has heard yet

    def wait(self, timeout_s: float | None) -> None:
        """Return after a wake-up or at the timeout."""
        # Not select(): that fails once a pilot of very many jobs has more than 1023 files open.
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        if poll.poll(None if timeout_s is None else _milliseconds(timeout_s)):
            os.read(self._reader, 4096)


def _milliseconds(seconds: float) -> int:
    """Timeout for poll(2), at most a million seconds; callers look again after it."""
    return max(0, math.ceil(min(seconds, 1e6) * 1000))


class Control:
    """Requests to the pilot; all threads obey them.

    Requests are only ever added, so plain attributes need no lock. `waker` is the main thread's;
    each attempt at hand has one of its own, since a wake-up reaches one thread only.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.waker = Waker()
        self.clock = clock
        self.terminated_at: float | None = None
        self.is_preempted = False
        self.is_draining = False
        self.is_drain_requested = False
        self.drain_reason = ""
        self.is_locked_out = False
        self._killed: dict[Attempt, str] = {}
        self._peeked: set[Attempt] = set()
        # Replaced and never changed: a signal handler reads it at any moment, without a lock.
        self._wakers: dict[Attempt, Waker] = {}
        self._standing: tuple[Waker, ...] = ()
        # Used again and never closed: who rings late must not write into another's file.
        self._spare: list[Waker] = []
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        #: Sends the main thread a signal whose handler calls `note_handled`.
        self.ring: Callable[[], None] | None = None
        self._ring_waker = Waker()
        self._rung = self._handled = 0
        self._ring_lock = threading.Lock()

    @property
    def is_ending(self) -> bool:
        """True once the pilot is to take no more jobs."""
        return self.is_terminated or self.is_draining or self.is_locked_out

    @contextlib.contextmanager
    def cancellable(self, connection: socket.socket) -> Iterator[None]:
        """While the block waits for an answer on this connection, a request to end shuts it."""
        self._connection = connection
        if self.is_ending:
            self._shut_connection()
        try:
            yield
        finally:
            self._connection = None

    @property
    def is_terminated(self) -> bool:
        """True once somebody on this node asked the pilot to end."""
        return self.terminated_at is not None

    def heed_signals(self) -> None:
        """Return when signals that have reached this process are handled.

        Handlers run in the main thread, as soon as the interpreter gets to it: that may be later
        than another thread learns what the same signal has done to a payload. They run in the order
        of their numbers, so one more signal of a high number is handled after all that had come.
        """
        if self.ring is None:
            return
        with self._ring_lock:
            self._rung += 1
            until = self.clock() + _HANDLED_S
            self.ring()
            while self._handled != self._rung and self.clock() < until:
                self._ring_waker.wait(until - self.clock())

    def note_handled(self) -> None:
        """Note that all signals before the one of `ring` are handled; called by its handler."""
        self._handled = self._rung
        self._ring_waker.wake()

    def terminate(self) -> None:
        """End soon; called by the signal handler."""
        if self.terminated_at is None:
            self.terminated_at = self.clock()
        self._wake_all()

    def preempt(self) -> None:
        """End soon, because the batch system wants the slot back; unfinished jobs run elsewhere."""
        self.is_preempted = True
        self.terminate()

    def drain(self, reason: str = "") -> None:
        """End after the jobs at hand; of several reasons the first one counts."""
        self.drain_reason = self.drain_reason or reason
        self.is_draining = True
        self._wake_all()

    def drain_on_request(self, reason: str) -> None:
        """Drain because an operator asked: the slot of an unfit node is not kept either."""
        self.is_drain_requested = True
        self.drain(reason)

    def lock_out(self) -> None:
        """End at once, without a message: the server no longer accepts the credential."""
        self.is_locked_out = True
        self._wake_all()

    def kill(self, attempt: Attempt, reason: str = "") -> None:
        """Stop this attempt of a job if it still runs."""
        self._killed.setdefault(attempt, reason)
        self._wake_all()

    def is_killed(self, attempt: Attempt) -> bool:
        """Tell whether somebody asked to stop this attempt."""
        return attempt in self._killed

    def kill_reason(self, attempt: Attempt) -> str:
        """Reason for the kill in the words of who asked; may be empty."""
        return self._killed.get(attempt, "")

    def peek(self, attempt: Attempt) -> None:
        """Send what this attempt has printed up to now, without waiting for the next time."""
        self._peeked.add(attempt)
        waker = self._wakers.get(attempt)
        if waker is not None:
            waker.wake()

    def take_peek_request(self, attempt: Attempt) -> bool:
        """Tell whether a peek at this attempt was asked for, and clear the request."""
        if attempt not in self._peeked:
            return False
        self._peeked.discard(attempt)
        return True

    def add_attempt(self, attempt: Attempt) -> Waker:
        """Note an attempt at hand, for the heartbeats; return the waker of the thread that runs it.

        It may wake for no reason.
        """
        with self._lock:
            waker = self._spare.pop() if self._spare else Waker()
            self._wakers = {**self._wakers, attempt: waker}
            return waker

    def remove_attempt(self, attempt: Attempt) -> None:
        """Remove an attempt that is over, and wake the main thread."""
        with self._lock:
            wakers = dict(self._wakers)
            self._spare.append(wakers.pop(attempt))
            self._wakers = wakers
        self.waker.wake()

    def new_waker(self) -> Waker:
        """Waker for one more thread that lives as long as the pilot; every request wakes it."""
        waker = Waker()
        with self._lock:
            self._standing = (*self._standing, waker)
        return waker

    def attempts(self) -> list[Attempt]:
        """Attempts at hand."""
        return list(self._wakers)

    def retry_until(self, started: float, retry_s: float) -> float:
        """Time at which retries end: soon, once the pilot is terminated."""
        limit = started + retry_s
        if self.terminated_at is None:
            return limit
        return min(limit, self.terminated_at + GOODBYE_S)

    def _shut_connection(self) -> None:
        connection_now = self._connection
        if connection_now is not None:
            with contextlib.suppress(OSError):
                # Beside TLS, whose own state is the reading thread's.
                socket.socket.shutdown(connection_now, socket.SHUT_RDWR)

    def _wake_all(self) -> None:
        if self.is_ending:
            self._shut_connection()
        self.waker.wake()
        for waker in (*self._standing, *self._wakers.values()):
            waker.wake()

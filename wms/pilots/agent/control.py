"""What the outside wants of the pilot, and how the main thread learns of it without polling."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable

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
        ready, _, _ = select.select([self._reader], [], [], timeout_s)
        if ready:
            os.read(self._reader, 4096)


class Control:
    """The wishes of signal handlers, heartbeats and server answers; the main thread obeys them.

    Wishes are only ever added, so plain attributes need no lock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.bell = Bell()
        self.clock = clock
        self.terminated_at: float | None = None
        self.is_draining = False
        self.is_locked_out = False
        self._killed: set[Attempt] = set()
        self._attempt: Attempt | None = None
        self._lock = threading.Lock()

    @property
    def is_terminated(self) -> bool:
        """True once somebody on this node asked the pilot to end."""
        return self.terminated_at is not None

    def terminate(self) -> None:
        """End soon: called by the signal handler."""
        if self.terminated_at is None:
            self.terminated_at = self.clock()
        self.bell.ring()

    def drain(self) -> None:
        """End after the current job."""
        self.is_draining = True
        self.bell.ring()

    def lock_out(self) -> None:
        """The server no longer knows this pilot: end at once, without a word to it."""
        self.is_locked_out = True
        self.bell.ring()

    def kill(self, attempt: Attempt) -> None:
        """Stop this attempt of a job if it still runs."""
        self._killed.add(attempt)
        self.bell.ring()

    def is_killed(self, attempt: Attempt) -> bool:
        """Tell whether somebody asked to stop this attempt."""
        return attempt in self._killed

    def hold(self, attempt: Attempt | None) -> None:
        """Note the attempt at hand (or none), for the heartbeats."""
        with self._lock:
            self._attempt = attempt

    def held(self) -> list[Attempt]:
        """Return the attempts at hand."""
        with self._lock:
            return [] if self._attempt is None else [self._attempt]

    def pause(self, seconds: float) -> None:
        """Let time pass, but return early when there is a new wish."""
        self.bell.wait(seconds)

    def give_up_at(self, started: float, patience_s: float) -> float:
        """Return when to stop trying to reach the server: soon, once the pilot is terminated."""
        limit = started + patience_s
        if self.terminated_at is None:
            return limit
        return min(limit, self.terminated_at + GOODBYE_S)

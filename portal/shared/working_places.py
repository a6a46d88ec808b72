"""Working places of one process of the web server, and how soon a refused request may come again.

A request that works holds a place. Who waits for something outside - a claim for a job, a follower
for an event, an upload for its sender - gives it back meanwhile (`resting`), and has it again at
once: what was let in is not refused later.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

#: Requests that a process can surely answer in a second: where many come in one moment, after which
#: it is quiet, so few were let in that they do not tell how many could be.
_AT_LEAST_PER_S = 20


class WorkingPlaces:
    """Places that are given in the order of asking; a few requests wait for one, and not for long.

    `most` at once work, `waiting` more wait for `wait_s` seconds at most. Those that come back from
    a rest may be more than that for a moment: nobody else begins until there are fewer.
    """

    def __init__(self, most: int, *, waiting: int, wait_s: float) -> None:
        self._most, self._waiting, self._wait_s = most, waiting, wait_s
        self._lock = threading.Lock()
        self._taken = 0
        self._queue: deque[threading.Event] = deque()

    def take(self) -> bool:
        """Whether there is a place, which is held from now on; it is waited for if need be."""
        with self._lock:
            if self._taken < self._most and not self._queue:
                self._taken += 1
                return True
            if len(self._queue) >= self._waiting:
                return False
            turn = threading.Event()
            self._queue.append(turn)
        if turn.wait(self._wait_s):
            return True
        with self._lock:
            # It may have been given the place just now.
            if turn.is_set():
                return True
            self._queue.remove(turn)
            return False

    def take_again(self) -> None:
        """Hold a place again after a rest, however many are held."""
        with self._lock:
            self._taken += 1

    def give_back(self) -> None:
        """Hold the place no longer."""
        with self._lock:
            self._taken -= 1
            while self._queue and self._taken < self._most:
                self._taken += 1
                self._queue.popleft().set()


class _OfThread(threading.local):
    """The place that the request of this thread holds."""

    places: WorkingPlaces | None = None


_HELD = _OfThread()


@contextmanager
def working(places: WorkingPlaces) -> Iterator[bool]:
    """Whether the request of this thread has a place, which it holds while the block runs."""
    if not places.take():
        yield False
        return
    _HELD.places = places
    try:
        yield True
    finally:
        _HELD.places = None
        places.give_back()


@contextmanager
def resting() -> Iterator[None]:
    """Pause of this thread's request, if it holds a place: others work while the block waits."""
    places = _HELD.places
    if places is None:
        yield
        return
    _HELD.places = None
    places.give_back()
    try:
        yield
    finally:
        places.take_again()
        _HELD.places = places


class RetryAdvice:
    """Seconds after which refused requests shall come again, so that they can be served then.

    Of the last ten to twenty seconds it is known how many were let in and how many refused. As many
    refused ones as were let in can be served in the same time again: they are spread over that
    stretch, at most over `most_s`, at least over `least_s`.
    """

    def __init__(self, *, least_s: float = 4.0, most_s: float = 60.0, window_s: float = 10.0):
        self._least_s, self._most_s, self._window_s = least_s, most_s, window_s
        self._lock = threading.Lock()
        self._window = 0
        #: Let in and refused: in the current window, and in the one before.
        self._now, self._before = [0, 0], [0, 0]

    def note(self, now_s: float, *, is_refused: bool) -> None:
        """Count one request."""
        with self._lock:
            self._turn(now_s)
            self._now[is_refused] += 1

    def seconds(self, now_s: float, chance: float) -> int:
        """Seconds for one request; `chance`, from 0 to 1, is its place in the stretch."""
        with self._lock:
            self._turn(now_s)
            served, refused = (sum(each) for each in zip(self._now, self._before, strict=True))
            seen_s = self._window_s + now_s % self._window_s
        stretch_s = seen_s * refused / max(served, _AT_LEAST_PER_S * seen_s)
        return 1 + int(chance * min(max(stretch_s, self._least_s), self._most_s))

    def _turn(self, now_s: float) -> None:
        window = int(now_s // self._window_s)
        if window == self._window:
            return
        self._before = self._now if window == self._window + 1 else [0, 0]
        self._window, self._now = window, [0, 0]

"""The waiting room of one web server's process: pilots that wait there until jobs come."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from wms.taskqueues.arrivals import Listener


class Place:
    """One pilot's. `news` numbers the latest news that it was called for."""

    def __init__(self, news: int) -> None:
        self.news = news
        self.called = threading.Event()
        self.is_sent_away = False


class WaitingRoom:
    """Calls as many pilots as jobs have come, the longest waiting first.

    Who is called and finds nothing that fits lets the next one look, so no job waits for a pilot
    that cannot run it. Each process has a room: in all of them together a few too many look.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: list[Place] = []
        self._news = 0
        self._listener = Listener(self.call, self.send_all_away)

    @contextmanager
    def place(self, most: int) -> Iterator[Place | None]:
        """Hold a place; None where `most` are taken already, or no news can be heard."""
        self._listener.start()
        with self._lock:
            has_place = self._listener.hears and len(self._places) < most
            place = Place(self._news) if has_place else None
            if place is not None:
                self._places.append(place)
        try:
            yield place
        finally:
            if place is not None:
                self._leave(place)

    def wait(self, place: Place, timeout_s: float) -> bool:
        """Tell whether the place was called before the time was over."""
        is_called = place.called.wait(timeout_s) and not place.is_sent_away
        place.called.clear()
        return is_called

    def call(self, jobs: int) -> None:
        """So many jobs have come."""
        with self._lock:
            self._news += 1
            self._call_next(jobs)

    def send_all_away(self) -> None:
        """Nobody can be called from now on, so nobody waits."""
        with self._lock:
            for place in self._places:
                place.is_sent_away = True
                place.called.set()

    def pass_on(self) -> None:
        """Let the next one look who has not, since jobs came last."""
        with self._lock:
            self._call_next(1)

    def _call_next(self, number: int) -> None:
        chosen = [place for place in self._places if place.news < self._news][:number]
        for place in chosen:
            place.news = self._news
            place.called.set()

    def _leave(self, place: Place) -> None:
        """Who was called and did not look, since its time was over, lets the next one."""
        with self._lock:
            self._places.remove(place)
            if place.called.is_set() and not place.is_sent_away:
                self._call_next(1)


ROOM = WaitingRoom()

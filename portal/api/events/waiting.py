"""Waits of followers at the server: a few in each process, the others come again.

A wait holds a thread of the web server. With more followers than places, the answer to the others
comes at once, and tells when to ask again: so 200 of them cost a few requests a second each other
second, and no thread that a page needs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from portal.shared.working_places import resting

#: Of the 24 threads of a process; a third are for claims of pilots.
PLACES = 4
#: Seconds between two looks, and until a follower without a place asks again.
_LOOK_S = 1.0
AGAIN_S = 5
_Found = TypeVar("_Found")


class WaitingRoom:
    """Places of a process for followers that wait."""

    def __init__(self, places: int, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._places = threading.BoundedSemaphore(places)
        self._pause = pause

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Whether there is a place, which is held while the block runs."""
        has_place = self._places.acquire(blocking=False)
        try:
            yield has_place
        finally:
            if has_place:
                self._places.release()

    def wait_for(
        self, look: Callable[[], _Found], is_enough: Callable[[_Found], bool], *, wait_s: float
    ) -> tuple[_Found, bool]:
        """Events found in time, and whether they could be waited for."""
        until_s = time.monotonic() + wait_s
        found = look()
        if is_enough(found) or not wait_s:
            return found, True
        with self.place() as has_place:
            while has_place and not is_enough(found) and time.monotonic() < until_s:
                with resting():
                    self._pause(_LOOK_S)
                found = look()
        return found, has_place


WAITING_ROOM = WaitingRoom(PLACES)

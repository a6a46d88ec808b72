"""Waiting list of held claims in one web server process: those woken when jobs arrive."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from wms.taskqueues.arrivals import Listener


class WaitingSlot:
    """Slot of one held claim. `arrival` numbers the latest arrival that it was woken for."""

    def __init__(self, arrival: int) -> None:
        self.arrival = arrival
        self.called = threading.Event()
        self.is_released = False


class WaitingList:
    """Wakes as many held claims as jobs have arrived, the longest waiting first.

    A claim that is woken and finds nothing that fits wakes the next one, so no job waits for a
    pilot that cannot run it. Each process has a list: in all of them together a few too many look.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: list[WaitingSlot] = []
        self._arrivals = 0
        self._listener = Listener(self.wake, self.release_all)

    @contextmanager
    def slot(self, most: int) -> Iterator[WaitingSlot | None]:
        """Take a slot; None where `most` are taken already, or arrivals cannot be heard."""
        self._listener.start()
        with self._lock:
            has_slot = self._listener.hears and len(self._slots) < most
            slot = WaitingSlot(self._arrivals) if has_slot else None
            if slot is not None:
                self._slots.append(slot)
        try:
            yield slot
        finally:
            if slot is not None:
                self._leave(slot)

    def wait(self, slot: WaitingSlot, timeout_s: float) -> bool:
        """Tell whether the slot was woken before the timeout."""
        is_called = slot.called.wait(timeout_s) and not slot.is_released
        slot.called.clear()
        return is_called

    def wake(self, jobs: int) -> None:
        """Wake slots: this number of jobs has arrived."""
        with self._lock:
            self._arrivals += 1
            self._wake_next(jobs)

    def release_all(self) -> None:
        """Release all slots: arrivals cannot be heard any more."""
        with self._lock:
            for slot in self._slots:
                slot.is_released = True
                slot.called.set()

    def wake_next(self) -> None:
        """Wake the next slot that has not looked since jobs arrived last."""
        with self._lock:
            self._wake_next(1)

    def _wake_next(self, number: int) -> None:
        chosen = [slot for slot in self._slots if slot.arrival < self._arrivals][:number]
        for slot in chosen:
            slot.arrival = self._arrivals
            slot.called.set()

    def _leave(self, slot: WaitingSlot) -> None:
        """Free a slot; if it was woken and timed out without a look, wake the next one."""
        with self._lock:
            self._slots.remove(slot)
            if slot.called.is_set() and not slot.is_released:
                self._wake_next(1)


WAITING_LIST = WaitingList()

"""End of the pilot's batch job as its batch system tells it, asked again from time to time."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..control import Control
from ..resources.batch_time import BatchTime, ask_batch_system

#: An administrator may move the end of a batch job; thousands of pilots must not burden a batch
#: system for that.
ASKED_EVERY_S = 300.0
#: A batch system counts in its own way; a smaller change of the end is no news.
_NEWS_S = 30.0

log = logging.getLogger("pilot")


class ToldTime:
    """Time of the pilot as its batch system tells it: asked when made, then in the background.

    Between two answers it is counted down. A question without an answer changes nothing.
    """

    def __init__(
        self,
        control: Control,
        *,
        started: float,
        environment: Mapping[str, str] = os.environ,
        ask: Callable[..., BatchTime] = ask_batch_system,
    ) -> None:
        self._control = control
        self._started = started
        self._environment = environment
        self._question = ask
        self._over = threading.Event()
        # Replaced as a whole: other threads read it. The end is of the control's clock.
        self._told: tuple[str, float | None] = ("", None)
        self._offered: tuple[str, float | None] = self._told
        self._accepted: tuple[str, float | None] = self._told
        self.faults: tuple[str, ...] = ()
        self.ask()

    def left_s(self) -> float | None:
        """Seconds until the batch system ends the pilot; None where nobody knows or limits that."""
        _, end = self._told
        return None if end is None else end - self._control.clock()

    def ask(self) -> None:
        """Ask now."""
        before = self._control.clock()
        answer = self._question(self._environment, age_s=before - self._started, now=time.time())
        self.faults = answer.faults
        for fault in answer.faults:
            log.warning("time left: %s", fault)
        if answer.source:
            end = None if answer.left_s is None else before + answer.left_s
            self._told = answer.source, end
            log.info("time left: %s says %s", answer.source, _shown(answer.left_s))

    def start(self) -> None:
        """Ask again from time to time, where the batch system told something or may yet do so."""
        if self._told[0] or self.faults:
            threading.Thread(target=self._repeat, name="told-time", daemon=True).start()

    def stop(self) -> None:
        """Ask no more."""
        self._over.set()

    def news(self) -> dict[str, Any]:
        """Time and its source for the server, where they differ from what it accepted last.

        Without a time where there is no limit.
        """
        self._offered = source, end = self._told
        if self._accepted[0] == source and _are_near(self._accepted[1], end):
            return {}
        left_s = {} if end is None else {"time_left_s": max(0, int(end - self._control.clock()))}
        return {"time_source": source, **left_s}

    def accepted(self) -> None:
        """Note that the server has the last news."""
        self._accepted = self._offered

    def _repeat(self) -> None:
        while not self._over.wait(ASKED_EVERY_S) and not self._control.is_terminated:
            self.ask()


def _are_near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) < _NEWS_S


def _shown(left_s: float | None) -> str:
    return "that there is no limit" if left_s is None else f"{left_s:.0f} s"

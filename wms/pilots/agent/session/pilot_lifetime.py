"""Clock of one pilot's lifetime: until when it takes jobs, when it ends itself or has to end.

It applies `lifetime_rules`, and terminates a pilot whose time is over.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable

from ..control import Control
from .lifetime_rules import Lifetime, Shutdown, lifetime, pilot_shutdown
from .pilot_config import LifetimeSettings

#: Seconds after the end of its time in which a pilot stops its payloads and reports them, before it
#: ends whatever is left. Batch systems are given a minute more than that time.
FINAL_REPORTS_S = 40.0
#: That minute: of what a batch system says is left, it is not the pilot's.
BATCH_MARGIN_S = 60.0
#: Clocks of nodes that were put to sleep may jump.
_LONGEST_WAIT_S = 60.0

log = logging.getLogger("pilot")


class PilotLifetime:
    """Times of this pilot, counted from its start; `lifetime_s` is what its queue gives it.

    Where its batch system leaves it less (`told_left_s`), that counts, whenever it is told.
    """

    def __init__(
        self,
        control: Control,
        *,
        started: float,
        lifetime_s: float,
        idle_limit_s: float,
        settings: LifetimeSettings,
        told_left_s: Callable[[], float | None] = lambda: None,
        random100: Callable[[], int] = lambda: random.randrange(100),
    ) -> None:
        self._control = control
        self._started = started
        self._idle_limit_s = idle_limit_s
        self._tail_limit_s = settings.tail_limit_s or idle_limit_s
        self._lifetime_s = lifetime_s
        self._settings = settings
        self._told_left_s = told_left_s
        self._draw = random100()
        self.is_over = False
        log.info("no new job after %d s, end after %d s", *self._limits())

    @property
    def times(self) -> Lifetime:
        """Division of the pilot's time, as it is known now."""
        told_s = self._told_left_s()
        slot_s = self._lifetime_s
        if told_s is not None:
            slot_s = max(0.0, min(slot_s, self.elapsed_s() + told_s - BATCH_MARGIN_S))
        return lifetime(
            max_walltime=int(slot_s),
            job_max_time=int(self._settings.job_max_s),
            retire_spread=int(self._settings.retire_spread_s),
            random100=self._draw,
            graceful_shutdown=int(self._settings.stop_margin_s),
            update_interval=0,
            min_retire=0,
        )

    def elapsed_s(self) -> float:
        """Age of the pilot."""
        return self._control.clock() - self._started

    def left_s(self) -> float:
        """Longest time that a job may need which begins now."""
        return self.times.die_after - self.elapsed_s()

    def accepts_jobs(self) -> bool:
        """Whether it is not too late to begin a job."""
        return self.elapsed_s() < self.times.retire_after

    def watch(self) -> None:
        """Terminate the pilot and its payloads soon after its time is over, from a thread."""
        threading.Thread(target=self._watch, name="lifetime", daemon=True).start()

    def shutdown_decision(
        self, *, idle_s: float, job_starts: int, running: int, draining: bool
    ) -> Shutdown:
        """Decision whether to end and whether to take jobs, `idle_s` into a time without any."""
        now = self.elapsed_s()
        slot = {
            "activity": "Idle",
            "state": "Unclaimed",
            "job_starts": job_starts,
            "age": idle_s,
            "idle_since": now - idle_s,
            "partitionable": True,
            "total_slots": 1 + running,
        }
        retire, die = self._limits()
        return pilot_shutdown(
            now=now,
            to_retire=retire,
            to_die=die,
            slots=[slot],
            draining=draining,
            max_idle=self._idle_limit_s,
            max_tail=self._tail_limit_s,
        )

    def _limits(self) -> tuple[int, int]:
        times = self.times
        return times.retire_after, times.die_after

    def _watch(self) -> None:
        waker = self._control.new_waker()
        while not self._control.is_terminated:
            left_s = self.left_s() + FINAL_REPORTS_S
            if left_s <= 0:
                log.warning("the pilot's time is over, and what is left is given back")
                self.is_over = True
                self._control.terminate()
                return
            waker.wait(min(left_s, _LONGEST_WAIT_S))

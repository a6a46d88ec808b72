"""Beat's schedule: one entry for each control loop, and of each at most one message at a time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from celery.beat import ScheduleEntry, Scheduler

from wms.core import loops


class LoopScheduler(Scheduler):
    """Wakes each loop once in its period.

    The schedule lives in memory: its periods are seconds, and a file could be torn by a crash.
    """

    def setup_schedule(self) -> None:
        """Make the schedule of the registered loops."""
        self.app.loader.import_default_modules()
        for loop in loops.LOOPS.values():
            self.add(
                name=loop.name,
                task=loop.task,
                schedule=loop.period_s,
                # Long ago, so that every loop has its first turn at once and is not taken for late.
                last_run_at=self.app.now() - timedelta(days=1),
            )

    def apply_async(self, entry: ScheduleEntry, *_: Any, **__: Any) -> None:
        """Wake the loop, unless a message that does so waits: on a busy host they pile up not."""
        loops.wake_loop(entry.task)

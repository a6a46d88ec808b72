"""The periodic sweep of empty TaskQueues."""

from __future__ import annotations

from datetime import datetime

from celery import shared_task

from wms.core import loops
from wms.taskqueues import services


def _sweep(_now: datetime) -> loops.CycleReport:
    return {"removed": services.remove_empty()}


SWEEPER = loops.register(
    loops.Loop("taskqueue-sweeper", "wms.taskqueues.sweep", period_s=60, run_cycle=_sweep)
)


@shared_task(name=SWEEPER.task, soft_time_limit=50, time_limit=60)
def sweep() -> None:
    """Remove TaskQueues that have been emptied; a missed run only leaves them a minute longer."""
    loops.run(SWEEPER)

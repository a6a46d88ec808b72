"""Control loops of TaskQueues and their Celery tasks: priorities, removal of empty TaskQueues.

The loop of priorities also sums up the counts of waiting jobs.
"""

from __future__ import annotations

from datetime import datetime

from celery import shared_task

from wms.core import loops
from wms.core.loops import last_report
from wms.taskqueues import operations as services
from wms.taskqueues import priorities


def _recompute(now: datetime) -> loops.CycleReport:
    at = last_report("task-queue-priorities").get("recomputed_at")
    return priorities.run_cycle(now, last=datetime.fromisoformat(at) if at else None)


def _sweep(_now: datetime) -> loops.CycleReport:
    return {"removed": services.remove_empty()}


PRIORITIES = loops.register(
    loops.Loop(
        "task-queue-priorities",
        priorities.RECOMPUTE_TASK,
        period_s=5,
        run_cycle=_recompute,
        # Every new TaskQueue wakes it: thousands in a row must not keep a worker busy with it.
        rests=True,
        deeds=("changed", "folded"),
    )
)
SWEEPER = loops.register(
    loops.Loop("taskqueue-sweeper", "wms.taskqueues.sweep", period_s=60, run_cycle=_sweep)
)


@shared_task(name=PRIORITIES.task, soft_time_limit=110, time_limit=120)
def recompute() -> None:
    """Compute priorities anew; a missed run leaves them as they are until the next."""
    loops.run(PRIORITIES)


@shared_task(name=SWEEPER.task, soft_time_limit=50, time_limit=60)
def sweep() -> None:
    """Remove TaskQueues that have been emptied; a missed run only leaves them a minute longer."""
    loops.run(SWEEPER)

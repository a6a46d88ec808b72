"""Control loop of bulk operations, and the Celery task that runs it."""

from __future__ import annotations

from celery import shared_task

from wms.bulk import execution
from wms.bulk.lifecycle import RUN_TASK
from wms.core import loops

RUNNER = loops.register(
    # Each process takes the objects that no other one is at.
    loops.Loop(
        "bulk-operations", RUN_TASK, period_s=5, run_cycle=execution.run_cycle, unlocked=True
    )
)


@shared_task(name=RUNNER.task, soft_time_limit=110, time_limit=120)
def run() -> None:
    """Run batches of bulk operations; the rest stays pending until the next run."""
    loops.run(RUNNER)

"""Control loop that groups failures, and the Celery task that runs it."""

from __future__ import annotations

from celery import shared_task

from wms.core import loops
from wms.failures import grouping

GROUPER = loops.register(
    loops.Loop(
        "failure-groups",
        "wms.failures.group",
        period_s=10,
        run_cycle=grouping.run_cycle,
        rests=True,
    )
)


@shared_task(name=GROUPER.task, soft_time_limit=50, time_limit=60)
def group() -> None:
    """Group new failures; a missed run groups them later."""
    loops.run(GROUPER)

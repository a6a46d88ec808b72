"""Control loop that submits the DAGs of schedules, and the Celery task that runs it."""

from __future__ import annotations

from celery import shared_task

from wms.core import loops
from wms.schedules import submitting
from wms.schedules.lifecycle import SUBMIT_TASK

SUBMITTER = loops.register(
    # Each process takes the schedules that no other one has locked.
    loops.Loop(
        "schedules",
        SUBMIT_TASK,
        period_s=10,
        run_cycle=submitting.run_cycle,
        unlocked=True,
        keeps_period=True,
    )
)


@shared_task(name=SUBMITTER.task, soft_time_limit=110, time_limit=120)
def submit() -> None:
    """Submit what is due; a missed run submits it later, as far as the schedules let it."""
    loops.run(SUBMITTER)

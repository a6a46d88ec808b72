"""Control loop of the sampler, and the Celery task that runs it."""

from __future__ import annotations

from celery import shared_task

from wms.core import loops
from wms.history import sampling

SAMPLER = loops.register(
    loops.Loop(
        sampling.LOOP,
        "wms.history.sample",
        period_s=10,
        run_cycle=sampling.run_cycle,
        keeps_period=True,
    )
)


@shared_task(name=SAMPLER.task, soft_time_limit=25, time_limit=30)
def sample() -> None:
    """Sample all series; a missed run leaves a gap, never a wrong value."""
    loops.run(SAMPLER)

"""The periodic sweep of broken uploads, and the periodic expressions of jobs."""

from __future__ import annotations

from datetime import datetime

from celery import shared_task

from wms.core import loops
from wms.jobs import blobs, periodic


def _sweep(now: datetime) -> loops.CycleReport:
    return {"removed": blobs.sweep_incoming(now=now)}


SWEEPER = loops.register(
    loops.Loop("upload-sweeper", "wms.jobs.sweep", period_s=600, run_cycle=_sweep)
)

_PERIODIC = "periodic-expressions"


def _evaluate(now: datetime) -> loops.CycleReport:
    return periodic.run_cycle(now, after=int(loops.last_report(_PERIODIC).get("after", 0)))


PERIODIC = loops.register(
    loops.Loop(_PERIODIC, "wms.jobs.periodic", period_s=20, run_cycle=_evaluate)
)


@shared_task(name=SWEEPER.task, soft_time_limit=50, time_limit=60)
def sweep() -> None:
    """Remove files of broken uploads; a missed run only leaves them a little longer."""
    loops.run(SWEEPER)


@shared_task(name=PERIODIC.task, soft_time_limit=50, time_limit=60)
def evaluate() -> None:
    """Evaluate the periodic expressions of jobs; a missed run makes them a little later."""
    loops.run(PERIODIC)

"""The periodic sweep of broken uploads."""

from __future__ import annotations

from datetime import datetime

from celery import shared_task

from wms.core import loops
from wms.jobs import blobs


def _sweep(now: datetime) -> loops.CycleReport:
    return {"removed": blobs.sweep_incoming(now=now)}


SWEEPER = loops.register(
    loops.Loop("upload-sweeper", "wms.jobs.sweep", period_s=600, run_cycle=_sweep)
)


@shared_task(name=SWEEPER.task, soft_time_limit=50, time_limit=60)
def sweep() -> None:
    """Remove files of broken uploads; a missed run only leaves them a little longer."""
    loops.run(SWEEPER)

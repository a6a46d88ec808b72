"""The director's and the monitor's periodic tasks."""

from __future__ import annotations

from celery import shared_task

from wms.core import loops
from wms.pilots import director, monitor

DIRECTOR = loops.register(
    loops.Loop("director", director.DIRECT_TASK, period_s=2, run_cycle=director.run_cycle)
)
MONITOR = loops.register(
    loops.Loop("pilot-monitor", "wms.pilots.monitor", period_s=5, run_cycle=monitor.run_cycle)
)


@shared_task(name=DIRECTOR.task, soft_time_limit=55, time_limit=60)
def direct() -> None:
    """Send pilots where there is work; a missed run delays them until the next."""
    loops.run(DIRECTOR)


@shared_task(name=MONITOR.task, soft_time_limit=55, time_limit=60)
def watch() -> None:
    """Look after the pilots; a missed run delays the rescue of their jobs until the next."""
    loops.run(MONITOR)

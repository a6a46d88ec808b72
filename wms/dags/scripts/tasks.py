"""Celery tasks of the script service: run granted scripts; control loop that ends lost runs.

The loop also wakes the service for runs that wait.
"""

from __future__ import annotations

from datetime import datetime

from celery import shared_task

from wms.core import loops
from wms.dags.scripts import run_leases, script_service
from wms.dags.scripts.conf import script_conf
from wms.dags.scripts.run_leases import SCRIPTS_TASK

#: Seconds of a run besides its script: files before and after, a database that is away.
_BESIDES_S = 3600


def _reap_and_wake(now: datetime) -> loops.CycleReport:
    """End runs whose service was lost, and wake a service for those that wait."""
    lost = run_leases.end_lost_runs(now)
    waits = run_leases.has_free_runs(now)
    if waits:
        loops.wake(SCRIPTS_TASK)
    return {"lost": len(lost), "waiting": waits}


REAPER = loops.register(
    # A run is ended once, by whoever has its row.
    loops.Loop(
        "script-reaper",
        "wms.dags.scripts.reap",
        period_s=10,
        run_cycle=_reap_and_wake,
        unlocked=True,
    )
)


# The message is acknowledged before the work: what it stands for is in the database, and a script
# may run for longer than the broker waits for a word.
@shared_task(name=SCRIPTS_TASK, acks_late=False, time_limit=int(script_conf().wall_s) + _BESIDES_S)
def run_scripts() -> None:
    """Run granted scripts; a lost message is replaced by the reaper's next cycle."""
    script_service.run_granted()


@shared_task(name=REAPER.task, soft_time_limit=55, time_limit=60)
def reap_scripts() -> None:
    """End lost runs; a missed cycle is made up by the next."""
    loops.run(REAPER)

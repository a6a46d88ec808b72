"""The tasks of the script service: running what is granted, and looking after the records."""

from __future__ import annotations

from datetime import datetime

from celery import shared_task

from wms.core import loops
from wms.dags.scripts import running, service
from wms.dags.scripts.conf import script_conf
from wms.dags.scripts.service import SCRIPTS_TASK

#: What a run may take besides its script: files before and after, a database that is away.
_BESIDES_S = 3600


def _look_after(now: datetime) -> loops.CycleReport:
    """End what was lost with its service, and wake a service for what waits."""
    lost = service.end_lost_runs(now)
    waits = service.has_free_runs(now)
    if waits:
        loops.wake(SCRIPTS_TASK)
    return {"lost": len(lost), "waiting": waits}


REAPER = loops.register(
    loops.Loop("script-reaper", "wms.dags.scripts.reap", period_s=10, run_cycle=_look_after)
)


# The message is acknowledged before the work: what it stands for is in the database, and a script
# may run for longer than the broker waits for a word.
@shared_task(name=SCRIPTS_TASK, acks_late=False, time_limit=int(script_conf().wall_s) + _BESIDES_S)
def run_scripts() -> None:
    """Run granted scripts; a message that is lost is made up for by the reaper's next round."""
    running.run_granted()


@shared_task(name=REAPER.task, soft_time_limit=55, time_limit=60)
def reap_scripts() -> None:
    """End lost runs; what is missed is ended in the next round."""
    loops.run(REAPER)

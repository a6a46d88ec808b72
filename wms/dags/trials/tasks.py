"""Celery tasks of trials: carry out waiting ones; control loop that finds lost and old ones."""

from __future__ import annotations

from datetime import datetime

from celery import shared_task

from wms.core import loops
from wms.core.conf import conf
from wms.dags.trials import operations, runner
from wms.dags.trials.archives import sweep_archives
from wms.dags.trials.lifecycle import RUN_TASK

#: Seconds of a trial besides its tool: files before, a database that is away.
_BESIDES_S = 300


def _look_after(now: datetime) -> loops.CycleReport:
    """Have lost trials begun anew, wake a worker for those that wait, remove what is over."""
    lost = operations.end_lost_trials(now)
    waits = operations.waiting_trials()
    if waits:
        loops.wake(RUN_TASK)
    forgotten = operations.forget_trials(now)
    # Active ones are read first: an archive comes before its row.
    archives = sweep_archives(operations.active_archives(), now=now)
    return {"lost": lost, "waiting": waits, "archives": archives, "forgotten": forgotten}


KEEPER = loops.register(
    loops.Loop(
        "dag-trials",
        "wms.dags.trials.look_after",
        period_s=10,
        run_cycle=_look_after,
        unlocked=True,
    )
)


# Acknowledged before the work: what the message stands for is in the database, and a trial may
# take longer than the broker waits for a word.
@shared_task(name=RUN_TASK, acks_late=False, time_limit=int(conf().trial_limit_s) + _BESIDES_S)
def run_trial() -> None:
    """Carry out a waiting trial; a lost message is replaced by the next cycle of the keeper."""
    runner.sweep_folders()
    if runner.run_next():
        loops.wake(RUN_TASK)


@shared_task(name=KEEPER.task, soft_time_limit=55, time_limit=60)
def look_after_trials() -> None:
    """Look after trials; a missed cycle is made up by the next."""
    loops.run(KEEPER)

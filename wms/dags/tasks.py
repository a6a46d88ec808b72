"""Control loops of DAGs and their Celery tasks: negotiator, engine, timers, rematcher, auditor.

Celery finds the tasks of the script service and of trials by this module, too.
"""

from __future__ import annotations

from celery import shared_task

from wms.core import loops
from wms.core.conf import conf
from wms.dags.engine import cycle as engine
from wms.dags.engine import rebuild, timers
from wms.dags.lifecycle import ADVANCE_TASK, NEGOTIATE_TASK
from wms.dags.negotiation import cycle as negotiation
from wms.dags.negotiation import rematch as rematching
from wms.dags.scripts import tasks as script_tasks
from wms.dags.trials import tasks as trial_tasks

#: Celery looks for tasks in this module: those of scripts and trials belong to it.
__all__ = ["script_tasks", "trial_tasks"]

NEGOTIATOR = loops.register(
    loops.Loop(
        "negotiator",
        NEGOTIATE_TASK,
        period_s=conf().negotiation_period_s,
        run_cycle=negotiation.run_cycle,
        # Every submission wakes it: thousands in a row must not keep a worker busy with it alone.
        rests=True,
        deeds=("matches", "bound"),
    )
)
ENGINE = loops.register(
    # Each process takes the DAGs that no other one is at.
    loops.Loop("dag-engine", ADVANCE_TASK, period_s=2, run_cycle=engine.run_cycle, unlocked=True)
)
REMATCHER = loops.register(
    loops.Loop("rematcher", "wms.dags.rematch", period_s=30, run_cycle=rematching.run_cycle)
)
TIMERS = loops.register(
    loops.Loop("dag-timers", "wms.dags.timers", period_s=2, run_cycle=timers.run_cycle)
)
AUDITOR = loops.register(
    loops.Loop("dag-auditor", "wms.dags.audit", period_s=86_400, run_cycle=rebuild.run_cycle)
)


@shared_task(name=NEGOTIATOR.task, soft_time_limit=55, time_limit=60)
def negotiate() -> None:
    """Match idle DAGs; a missed run leaves them idle until the next."""
    loops.run(NEGOTIATOR)


@shared_task(name=ENGINE.task, soft_time_limit=110, time_limit=120)
def advance() -> None:
    """Continue DAGs with entries in the inbox; after a missed run the next one reads these."""
    loops.run(ENGINE)


@shared_task(name=REMATCHER.task, soft_time_limit=55, time_limit=60)
def rematch() -> None:
    """Take DAGs from sites where they make no progress; a missed run leaves them there until the
    next.
    """
    loops.run(REMATCHER)


@shared_task(name=TIMERS.task, soft_time_limit=55, time_limit=60)
def timers_of_dags() -> None:
    """Notify the engine of due timers; a missed run does so later."""
    loops.run(TIMERS)


@shared_task(name=AUDITOR.task, soft_time_limit=1700, time_limit=1800)
def audit() -> None:
    """Compare a sample of DAGs with their logs, once a day."""
    loops.run(AUDITOR)

"""Control loops of jobs and their Celery tasks: sweepers, periodic expressions, pauses, accounting.

The sweepers remove broken and expired uploads and old streams, outputs whose lease is over and
contents that nothing refers to; the materialiser makes the jobs of clusters; rescheduled jobs are
queued again after their pauses; waiting jobs follow their input data; the usage of ended attempts
and stored files is accounted.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from celery import shared_task

from wms.core import loops
from wms.core.idling import SOON_S
from wms.core.storage.current import writable_store
from wms.jobs import accounting, periodic_expressions, quotas
from wms.jobs.attempts import rescheduling
from wms.jobs.clusters import materialiser
from wms.jobs.clusters.lifecycle import MATERIALISE_TASK
from wms.jobs.input_data import refreshing
from wms.jobs.input_data.changes import REFRESH_TASK
from wms.jobs.output import streams
from wms.jobs.sandboxes import sweep as sandboxes
from wms.jobs.selectors import paused_until
from wms.jobs.uploads.operations import sweep_uploads


def _sweep(now: datetime) -> loops.CycleReport:
    # The store's own last: where its key may not list unfinished writes, the rest goes on.
    return {
        "uploads": sweep_uploads(now=now),
        "streams": streams.sweep_streams(now=now),
        "removed": writable_store().sweep(now=now),
    }


SWEEPER = loops.register(
    loops.Loop("upload-sweeper", "wms.jobs.sweep", period_s=600, run_cycle=_sweep)
)

_SANDBOXES = "sandbox-sweeper"


def _sweep_sandboxes(now: datetime) -> loops.CycleReport:
    return sandboxes.run_cycle(now, last=loops.last_report(_SANDBOXES))


SANDBOX_SWEEPER = loops.register(
    loops.Loop(
        _SANDBOXES,
        "wms.jobs.sweep_sandboxes",
        period_s=60,
        run_cycle=_sweep_sandboxes,
        deeds=("files", "contents"),
    )
)

_PERIODIC = "periodic-expressions"


def _evaluate(now: datetime) -> loops.CycleReport:
    return periodic_expressions.run_cycle(
        now, after=int(loops.last_report(_PERIODIC).get("after", 0))
    )


PERIODIC = loops.register(
    loops.Loop(_PERIODIC, "wms.jobs.periodic_expressions", period_s=20, run_cycle=_evaluate)
)


def _requeue(now: datetime) -> loops.CycleReport:
    requeued = rescheduling.requeue_jobs(now)
    return {
        "requeued": requeued,
        "soon": paused_until(now + timedelta(seconds=SOON_S)).exists(),
    }


REQUEUER = loops.register(
    # Each process takes the jobs that no other one is at.
    loops.Loop(
        "rescheduled-jobs", "wms.jobs.requeue", period_s=2, run_cycle=_requeue, unlocked=True
    )
)


def _account(_now: datetime) -> loops.CycleReport:
    return {"accounted": accounting.account_attempts(), "folded": quotas.fold_stored_bytes()}


MATERIALISER = loops.register(
    loops.Loop(
        "job-materialiser",
        MATERIALISE_TASK,
        period_s=2,
        run_cycle=materialiser.run_cycle,
        # Each process takes the clusters that no other one is at.
        unlocked=True,
        deeds=materialiser.DEEDS,
    )
)


ACCOUNTANT = loops.register(
    loops.Loop("attempt-accounts", "wms.jobs.account", period_s=10, run_cycle=_account)
)


INPUTS = loops.register(
    # Each process takes the sets of inputs that no other one is at.
    loops.Loop(
        "input-data",
        REFRESH_TASK,
        period_s=5,
        run_cycle=refreshing.run_cycle,
        unlocked=True,
        deeds=refreshing.DEEDS,
    )
)


@shared_task(name=SWEEPER.task, soft_time_limit=50, time_limit=60)
def sweep() -> None:
    """Remove uploads that are over and old streams; a missed run leaves them a little longer."""
    loops.run(SWEEPER)


@shared_task(name=SANDBOX_SWEEPER.task, soft_time_limit=50, time_limit=60)
def sweep_sandboxes() -> None:
    """Remove outputs that are over and unnamed contents; a missed run removes them later."""
    loops.run(SANDBOX_SWEEPER)


@shared_task(name=PERIODIC.task, soft_time_limit=50, time_limit=60)
def evaluate() -> None:
    """Evaluate the periodic expressions of jobs; a missed run makes them a little later."""
    loops.run(PERIODIC)


@shared_task(name=REQUEUER.task, soft_time_limit=50, time_limit=60)
def requeue() -> None:
    """Enqueue jobs whose pauses are over; a missed run makes the pauses a little longer."""
    loops.run(REQUEUER)


@shared_task(name=MATERIALISER.task, soft_time_limit=50, time_limit=60)
def materialise() -> None:
    """Make the next jobs of clusters; a missed run makes them later."""
    loops.run(MATERIALISER)


@shared_task(name=INPUTS.task, soft_time_limit=50, time_limit=60)
def refresh_inputs() -> None:
    """Have jobs and DAGs follow their input data; a missed run does it a little later."""
    loops.run(INPUTS)


@shared_task(name=ACCOUNTANT.task, soft_time_limit=50, time_limit=60)
def account() -> None:
    """Add ended attempts and stored files to the accounts; a missed run adds them later."""
    loops.run(ACCOUNTANT)

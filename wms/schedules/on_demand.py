"""Submission of a schedule's DAG at once, when a person wants it, beside the times of the schedule.

The times stay as they are. Pauses are no obstacle: they hold up what comes by itself.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, ReasonRequired
from wms.dags.models import Dag
from wms.schedules.lifecycle import SCHEDULES
from wms.schedules.models import Schedule
from wms.schedules.selectors import unfinished_dags
from wms.schedules.services import locked_schedules
from wms.schedules.states import NOTES, RunOutcome
from wms.schedules.submitting import forget_old_runs, record_run, submit_dag_of


@transaction.atomic
def run_schedules(ids: Collection[int], *, actor: Actor, reason: str) -> dict[int, Dag]:
    """Submit the DAG of each schedule now, in the name of its owner; the DAGs by schedule.

    Raises NotFound, NotPermitted, ReasonRequired, Conflict for one that was removed or whose DAG
    before has not ended while overlap is not allowed, and what a submission raises. Then nothing
    was submitted.
    """
    schedules = locked_schedules(ids, actor)
    if not reason.strip():
        raise ReasonRequired("run")
    return {each.pk: _run(each, actor=actor, reason=reason.strip()) for each in schedules}


def _run(schedule: Schedule, *, actor: Actor, reason: str) -> Dag:
    if schedule.state not in NOTES["run"]:
        raise Conflict(f"Schedule {schedule.pk} is {schedule.state}: its files are gone.")
    before = unfinished_dags(schedule).first()
    if before is not None and not schedule.allows_overlap:
        raise Conflict(
            f"Schedule {schedule.pk} does not overlap, and DAG {before.pk} of it is {before.state}."
        )
    now = timezone.now()
    dag = submit_dag_of(schedule)
    record_run(schedule, now, RunOutcome.SUBMITTED, now, dag=dag, asked_by=actor.name)
    forget_old_runs(schedule)
    facts = {"reason": reason, "dag": dag.pk}
    SCHEDULES.note("run", {schedule.pk: facts}, states=NOTES["run"], actor=actor)
    record_action(
        "run schedule",
        target=f"schedule {schedule.pk}",
        actor=actor,
        reason=reason,
        facts={"dag": dag.pk},
    )
    return dag

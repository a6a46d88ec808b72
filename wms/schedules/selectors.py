"""Selectors of schedules that a user may see, their files, times and events."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from wms.accounting.walls import Walls, seen_by
from wms.core.errors import NotFound
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.states import DAG_TERMINAL
from wms.schedules.models import Schedule, ScheduleEvent, ScheduleFile, ScheduleRun

#: Events that a page tells.
_EVENTS = 20


def visible_schedules(user: User) -> QuerySet[Schedule]:
    """The schedules that the user may read: those of the user's frontends."""
    return seen_by(user, Schedule.objects.all(), Walls.by_group)


def listed_schedules(user: User) -> QuerySet[Schedule]:
    """Visible schedules with what a list shows, latest first.

    `last_outcome` and `last_dag_id` tell of the latest time that has come.
    """
    latest = ScheduleRun.objects.filter(schedule=OuterRef("pk")).order_by("-planned_at")
    shown = visible_schedules(user).select_related("owner", "accounting_group").order_by("-pk")
    return shown.annotate(
        last_outcome=Subquery(latest.values("outcome")[:1]),
        last_dag_id=Subquery(latest.values("dag_id")[:1]),
    )


def find_schedule(user: User, schedule_id: int) -> Schedule:
    """One visible schedule. Raises NotFound."""
    found = listed_schedules(user).filter(pk=schedule_id).first()
    if found is None:
        raise NotFound(f"There is no schedule {schedule_id}, or you may not see it.")
    return found


def unfinished_dags(schedule: Schedule | OuterRef) -> QuerySet[Dag]:
    """DAGs of a schedule that have not ended, as it submitted them or as further runs of these."""
    workspaces = Dag.objects.filter(schedule_runs__schedule=schedule).values("workspace")
    alive = Dag.objects.filter(workspace__in=workspaces, parent_node=None)
    return alive.exclude(state__in=DAG_TERMINAL).order_by("pk")


def has_unfinished_dag() -> Exists:
    """Condition on schedules: a DAG of theirs has not ended."""
    return Exists(unfinished_dags(OuterRef(OuterRef("pk"))))


def runs_of(schedule: Schedule) -> QuerySet[ScheduleRun]:
    """The times of a schedule that are kept, latest first, with their DAGs."""
    return schedule.runs.select_related("dag").order_by("-planned_at")


def dags_beside(dag: Dag) -> QuerySet[Dag]:
    """DAGs of the schedule that has submitted a DAG, with it; none for other DAGs."""
    schedules = ScheduleRun.objects.filter(dag=dag).values("schedule")
    return Dag.objects.filter(schedule_runs__schedule__in=schedules)


def files_of(schedule: Schedule) -> QuerySet[ScheduleFile]:
    """The files that are submitted, by name."""
    return schedule.files.select_related("blob").order_by("path")


def events_of(schedule: Schedule) -> Sequence[ScheduleEvent]:
    """The latest events of a schedule, latest first."""
    return list(schedule.events.order_by("-pk")[:_EVENTS])

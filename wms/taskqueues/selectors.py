"""Selectors of TaskQueues: demand of waiting jobs, priorities, needs, counts, oldest jobs.

Also the TaskQueue in which a job waits, and the worker nodes that it avoids.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from matching.task_queues.needs import Needs
from wms.accounting.walls import Walls, seen_by
from wms.core.errors import NotFound
from wms.core.models import User
from wms.taskqueues.models import Tally, TaskQueue, Ticket, WaitingJob

#: Where a need is called otherwise in the rows.
_COLUMNS = {"owner": "owner__username"}


@dataclass(frozen=True, slots=True)
class Demand:
    """The jobs that wait in one TaskQueue."""

    task_queue_id: int
    needs: Needs
    waiting_jobs: int


def demands() -> list[Demand]:
    """All TaskQueues that have waiting jobs, with their needs, in the order of their ids."""
    names = [field.name for field in fields(Needs)]
    columns = [_COLUMNS.get(name, name) for name in names]
    rows = with_waiting_counts(TaskQueue.objects.all()).filter(waiting__gt=0).order_by("pk")
    return [
        Demand(task_queue_id, Needs.from_dict(dict(zip(names, values, strict=True))), waiting)
        for task_queue_id, waiting, *values in rows.values_list("pk", "waiting", *columns)
    ]


def waiting_jobs_of(whose: Q) -> int:
    """The number of jobs that wait in these TaskQueues, by the count of each."""
    task_queues = TaskQueue.objects.filter(whose).values("pk")
    jobs = Tally.objects.filter(task_queue_id__in=task_queues).aggregate(jobs=Sum("jobs"))["jobs"]
    return max(0, jobs or 0)


def waiting_in_all() -> tuple[int, int]:
    """The number of jobs that wait, and of the TaskQueues that are counted, of everybody.

    One query, of the counts of all TaskQueues.
    """
    found = Tally.objects.aggregate(
        jobs=Sum("jobs"), task_queues=Count("task_queue_id", distinct=True)
    )
    return max(0, found["jobs"] or 0), found["task_queues"]


def waiting_jobs_by_group() -> dict[str, int]:
    """The number of jobs that wait in the name of each group that has any. One query."""
    rows = with_waiting_counts(TaskQueue.objects.all())
    counted = rows.order_by().values_list("owner_group").annotate(jobs=Sum("waiting"))
    return {group: jobs for group, jobs in counted.filter(jobs__gt=0)}


def priorities() -> dict[int, float]:
    """The weight in the draw of every TaskQueue, by id."""
    return dict(Ticket.objects.values_list("task_queue_id", "priority"))


def queues_waiting_since(moment: datetime) -> frozenset[int]:
    """The TaskQueues whose first jobs came before this moment: one look into the index for each."""
    first = (
        WaitingJob.objects.filter(task_queue_id=OuterRef("pk"))
        .order_by("priority", "job_id")
        .values("enqueued_at")[:1]
    )
    # Jobs of a younger TaskQueue are younger.
    rows = TaskQueue.objects.filter(created_at__lt=moment).annotate(first=Subquery(first))
    return frozenset(rows.filter(first__lt=moment).values_list("pk", flat=True))


def with_waiting_counts(rows: QuerySet[TaskQueue]) -> QuerySet[Any]:
    """TaskQueues with their owners, and with the number of jobs as `waiting`."""
    jobs = (
        Tally.objects.filter(task_queue_id=OuterRef("pk"))
        .order_by()
        .values("task_queue_id")
        .annotate(total=Sum("jobs"))
        .values("total")
    )
    return rows.annotate(waiting=Coalesce(Subquery(jobs), 0)).select_related("owner")


def find_task_queue(user: User, task_queue_id: int) -> Demand:
    """One visible TaskQueue. Raises NotFound."""
    row = with_waiting_counts(visible_task_queues(user)).filter(pk=task_queue_id).first()
    if row is None:
        raise NotFound(f"There is no TaskQueue {task_queue_id}: it may be empty by now.")
    return _demand(row, row.waiting)


def visible_task_queues(user: User) -> QuerySet[TaskQueue]:
    """The TaskQueues that the user may see: those of the user's frontends."""
    return seen_by(user, TaskQueue.objects.all(), Walls.by_name)


def task_queue_of(job_id: int) -> int | None:
    """The id of the TaskQueue in which a job waits; None when it does not wait."""
    waiting = WaitingJob.objects.filter(job_id=job_id)
    return waiting.values_list("task_queue_id", flat=True).first()


def avoided_hosts(job_id: int, since: datetime) -> tuple[str, ...]:
    """Worker nodes that have failed a job that waits, if it has waited from then on or later."""
    waiting = WaitingJob.objects.filter(job_id=job_id, enqueued_at__gte=since)
    return tuple(waiting.values_list("avoided_hosts", flat=True).first() or ())


def needs_of(row: TaskQueue) -> Needs:
    """The needs that a TaskQueue stands for; its owner has been read with it."""
    names = (field.name for field in fields(Needs) if field.name != "owner")
    return Needs.from_dict(
        {"owner": row.owner.username, **{name: getattr(row, name) for name in names}}
    )


def _demand(row: TaskQueue, waiting_jobs: int) -> Demand:
    return Demand(task_queue_id=row.pk, needs=needs_of(row), waiting_jobs=waiting_jobs)

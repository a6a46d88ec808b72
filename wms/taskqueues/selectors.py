"""Reading TaskQueues."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count

from matching.needs import Needs
from wms.core.errors import NotFound
from wms.core.models import User
from wms.taskqueues.models import TaskQueue, WaitingJob


@dataclass(frozen=True, slots=True)
class Demand:
    """The jobs that wait in one TaskQueue."""

    task_queue_id: int
    needs: Needs
    waiting_jobs: int


def demands() -> list[Demand]:
    """All TaskQueues that have waiting jobs, with their needs, in the order of their ids."""
    rows = (
        TaskQueue.objects.annotate(waiting=Count("waiting_jobs"))
        .filter(waiting__gt=0)
        .select_related("owner")
        .order_by("pk")
    )
    return [_demand(row, row.waiting) for row in rows]


def find_task_queue(user: User, task_queue_id: int) -> Demand:
    """One TaskQueue; everybody who is logged in sees all of them. Raises NotFound."""
    visible = TaskQueue.objects.all() if user.is_active else TaskQueue.objects.none()
    queues = visible.annotate(waiting=Count("waiting_jobs")).select_related("owner")
    row = queues.filter(pk=task_queue_id).first()
    if row is None:
        raise NotFound(f"There is no TaskQueue {task_queue_id}: it may be empty by now.")
    return _demand(row, row.waiting)


def task_queue_of(job_id: int) -> int | None:
    """The id of the TaskQueue in which a job waits; None when it does not wait."""
    waiting = WaitingJob.objects.filter(job_id=job_id)
    return waiting.values_list("task_queue_id", flat=True).first()


def _demand(row: TaskQueue, waiting_jobs: int) -> Demand:
    return Demand(
        task_queue_id=row.pk,
        needs=Needs(
            owner=row.owner.username,
            owner_group=row.owner_group,
            cpu_time_s=row.cpu_time_s,
            cores=row.cores,
            memory_mb=row.memory_mb,
            sites=tuple(row.sites),
            banned_sites=tuple(row.banned_sites),
            platforms=tuple(row.platforms),
            tags=tuple(row.tags),
        ),
        waiting_jobs=waiting_jobs,
    )

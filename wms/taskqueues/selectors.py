"""Reading TaskQueues."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count

from matching.needs import Needs
from wms.taskqueues.models import TaskQueue


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
    return [
        Demand(
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
            waiting_jobs=row.waiting,
        )
        for row in rows
    ]

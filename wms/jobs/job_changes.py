"""Change of priority and needs of jobs that have not ended, in one call.

Jobs that wait are moved to the TaskQueues of what they need now; for a job that a pilot has, it
counts if it waits again. Each change is an event of the job.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from django.db import transaction

from matching.task_queues.needs import Needs
from wms.core.actors import Actor
from wms.jobs import lifecycle
from wms.jobs.models import Job
from wms.jobs.operations import enqueue_again
from wms.jobs.states import NOTES
from wms.taskqueues.operations import withdraw


@transaction.atomic
def change_open_jobs(
    job_ids: Collection[int],
    *,
    actor: Actor,
    reason: str,
    priority: int | None = None,
    needs: Mapping[str, Any] | None = None,
) -> list[int]:
    """Give jobs another priority and other needs; the ids of those that had not ended.

    Of jobs that a pilot has it counts if they wait again.
    """
    withdraw(job_ids)
    found = Job.objects.filter(pk__in=job_ids, state__in=NOTES["prioritise"]).order_by("pk")
    jobs = list(found.select_related("description").select_for_update(of=("self",)))
    ids = [job.pk for job in jobs]
    # Once more, now that the jobs are locked: one may have been rescheduled in between.
    withdraw(ids, are_locked=True)
    if priority is not None:
        facts = {job.pk: {"priority": [job.priority, priority], "reason": reason} for job in jobs}
        lifecycle.note("prioritise", facts, actor=actor)
        Job.objects.filter(pk__in=ids).update(priority=priority)
    if needs:
        _change_needs(jobs, needs, actor=actor, reason=reason)
    enqueue_again(ids)
    return ids


def _change_needs(
    jobs: Collection[Job], changes: Mapping[str, Any], *, actor: Actor, reason: str
) -> None:
    facts: dict[int, dict[str, Any]] = {}
    for job in jobs:
        old = Needs.from_dict(job.needs)
        told = {name: [job.needs.get(name), list(value) if isinstance(value, tuple) else value]
                for name, value in changes.items()}  # fmt: skip
        facts[job.pk] = {**told, "reason": reason}
        job.give(needs=replace(old, **changes).as_dict())
    lifecycle.note("change", facts, actor=actor)
    Job.objects.bulk_update(jobs, ["own"], batch_size=500)

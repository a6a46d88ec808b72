"""Priorities of TaskQueues and their intervals in the draw: a control loop computes all at once.

New TaskQueues get theirs at once. The loop also sums up the counts of waiting jobs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import connection, transaction

from matching.negotiation.fairshare import BEST_PRIORITY
from matching.task_queues.priority_shares import (
    LEAST_PRIORITY,
    Feedback,
    Group,
    Pool,
    parts,
    pool_of,
)
from matching.task_queues.weighted_draws import JOB_WEIGHTS
from wms.accounting import selectors as accounting
from wms.core.inbox import announce
from wms.core.models import InboxEntry
from wms.taskqueues.models import TaskQueue
from wms.taskqueues.sql import (
    ALLOW_NESTED_LOOPS,
    FORBID_NESTED_LOOPS,
    ISSUE_TICKETS,
    LOCK_PRIORITIES,
    PLACE_ALL,
)
from wms.taskqueues.task_queue_policy import task_queue_policy
from wms.taskqueues.waiting import fold_tally

#: The inbox that hears of TaskQueues that appeared or went, and the task that reads it.
TOPIC = "task-queues"
RECOMPUTE_TASK = "wms.taskqueues.recompute"
_CHANGE = partial(InboxEntry, topic=TOPIC, key=0, kind=InboxEntry.Kind.LOOK)
#: Priorities follow the jobs that came and went at least this often.
_PERIOD = timedelta(minutes=2)


def issue_tickets(task_queue_ids: Collection[int]) -> None:
    """Give new TaskQueues, whose jobs wait already, their priorities at once.

    Only their own tickets are written: those of others follow with the next recomputation, which
    is asked for here.
    """
    groups = _groups()
    new = TaskQueue.objects.filter(pk__in=task_queue_ids).values_list("owner_group", "owner_id")
    pools = {pool_of(owner_group, owner, groups) for owner_group, owner in new.distinct()}
    ours = {pool: part for pool, part in _parts(groups).items() if pool in pools}
    _execute(ISSUE_TICKETS, {**_parameters(ours, groups), "new": list(task_queue_ids)})
    announce([_CHANGE()])


def note_removal() -> None:
    """Announce that TaskQueues were removed, which changes the priorities of others.

    No loop is woken for it, since claims call this, which need no broker.
    """
    _CHANGE().save()


@transaction.atomic
def recompute() -> int:
    """Compute all priorities and intervals anew; the number of changed tickets.

    Two at once wait for each other. Claims and submissions are not held up: nobody else writes or
    locks tickets, except who removes an empty TaskQueue.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOCK_PRIORITIES)
    groups = _groups()
    return _execute(PLACE_ALL, _parameters(_parts(groups), groups))


def _execute(statement: str, parameters: Mapping[str, Any]) -> int:
    """Run a statement over all TaskQueues; the number of rows written."""
    with connection.cursor() as cursor:
        cursor.execute(FORBID_NESTED_LOOPS)
        cursor.execute(statement, parameters)
        written = int(cursor.rowcount)
        cursor.execute(ALLOW_NESTED_LOOPS)
    return written


def run_cycle(now: datetime, *, last: datetime | None) -> dict[str, Any]:
    """Recompute when TaskQueues appeared or went, or the last time is two minutes ago.

    What is announced while this runs is read in the next cycle. The count of waiting jobs is
    folded in any case.
    """
    folded = fold_tally()
    with transaction.atomic():
        changes, _ = InboxEntry.objects.filter(topic=TOPIC).delete()
        is_due = last is None or now - last >= _PERIOD
        if is_due:
            _issue_missing()
        changed = recompute() if changes or is_due else None
    at = now if changed is not None else last
    return {"changed": changed or 0, "folded": folded, "recomputed_at": at and at.isoformat()}


def _issue_missing() -> None:
    """Issue tickets to TaskQueues without one, whose jobs would never be drawn."""
    without = TaskQueue.objects.filter(ticket=None)
    locked = without.select_for_update(of=("self",), no_key=True, skip_locked=True)
    missing = list(locked.values_list("pk", flat=True))
    if missing:
        issue_tickets(missing)


def _parameters(pools: Mapping[Pool, float], groups: Mapping[str, Group]) -> dict[str, Any]:
    return {
        "sharing": [name for name, group in groups.items() if group.has_job_sharing],
        "weights": list(JOB_WEIGHTS),
        "groups": [pool.owner_group for pool in pools],
        "owners": [pool.owner for pool in pools],
        "parts": list(pools.values()),
        "least": LEAST_PRIORITY,
    }


def _groups() -> dict[str, Group]:
    rows = accounting.groups_in_draws()
    return {name: Group(share, has_job_sharing) for name, share, has_job_sharing in rows}


def _parts(groups: Mapping[str, Group]) -> dict[Pool, float]:
    policy = task_queue_policy()
    present = list(TaskQueue.objects.order_by().values_list("owner_group", "owner_id").distinct())
    return parts(
        present,
        groups,
        default_share=policy.default_share,
        feedback=_feedback(policy.max_correction) if policy.uses_feedback else None,
    )


def _feedback(max_correction: float) -> Feedback:
    """Recent use of submitters: their real priorities above that of one without any use."""
    return Feedback(
        {
            (submitter.group, submitter.user_id): submitter.real_priority - BEST_PRIORITY
            for submitter in accounting.submitters()
        },
        max_correction,
    )

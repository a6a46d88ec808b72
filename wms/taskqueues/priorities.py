"""The priorities of TaskQueues and their places in the draw: computed for all, set-wise."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from matching.draws import JOB_WEIGHTS
from matching.fairshare import BEST_PRIORITY
from matching.pools import LEAST_PRIORITY, Feedback, Group, Pool, parts, pool_of
from wms.accounting import selectors as accounting
from wms.core.inbox import announce
from wms.core.models import InboxEntry
from wms.taskqueues.models import TaskQueue, TaskQueuePolicy
from wms.taskqueues.policies import task_queue_policy
from wms.taskqueues.waiting import fold_tally

#: The inbox that hears of TaskQueues that appeared or went, and the task that reads it.
TOPIC = "task-queues"
RECOMPUTE_TASK = "wms.taskqueues.recompute"
#: Priorities follow the jobs that came and went at least this often.
_PERIOD = timedelta(minutes=2)

# A pool's part is spread in proportion to the sum of the jobs' weights. The parts come from
# `matching.pools`; owner 0 stands for all owners of a group with job sharing. Emptied TaskQueues
# have the least priority until they are removed.
_PRICED = """
WITH weighed AS (
    SELECT task_queue_id, sum(jobs * (%(weights)s::float8[])[priority + 1]) AS weight
    FROM taskqueues_tally GROUP BY task_queue_id
), pool AS (
    SELECT * FROM unnest(%(groups)s::text[], %(owners)s::bigint[], %(parts)s::float8[])
        AS pool(owner_group, owner_id, part)
), priced AS (
    SELECT q.id, q.cpu_time_s, greatest(%(least)s, pool.part * weighed.weight
        / nullif(sum(weighed.weight) OVER (PARTITION BY pool.owner_group, pool.owner_id), 0)
    ) AS priority
    FROM taskqueues_taskqueue AS q
    JOIN pool ON pool.owner_group = q.owner_group AND pool.owner_id IN (0, q.owner_id)
    LEFT JOIN weighed ON weighed.task_queue_id = q.id
)
"""

# The intervals of a segment begin where the one before ends. Only what has changed is written.
_PLACE_ALL = (
    _PRICED
    + """, placed AS (
    SELECT id, priority, coalesce(sum(priority) OVER (
        PARTITION BY cpu_time_s ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS starts_at
    FROM priced
)
UPDATE taskqueues_ticket AS t SET priority = placed.priority, starts_at = placed.starts_at
FROM placed
WHERE t.task_queue_id = placed.id
  AND (t.priority, t.starts_at) IS DISTINCT FROM (placed.priority, placed.starts_at)
"""
)
_ISSUE = (
    _PRICED
    + """
INSERT INTO taskqueues_ticket (task_queue_id, cpu_time_s, priority)
SELECT id, cpu_time_s, priority FROM priced WHERE id = ANY(%(new)s)
"""
)


def issue_tickets(task_queue_ids: Collection[int]) -> None:
    """Give new TaskQueues, whose jobs wait already, their priorities at once.

    Only their own tickets are written: those of others follow with the next recomputation, which
    is asked for here.
    """
    policy = task_queue_policy()
    all_parts = _parts(policy)
    groups = _groups()
    new = TaskQueue.objects.filter(pk__in=task_queue_ids).values_list("owner_group", "owner_id")
    pools = {pool_of(owner_group, owner, groups) for owner_group, owner in new.distinct()}
    ours = {pool: part for pool, part in all_parts.items() if pool in pools}
    with connection.cursor() as cursor:
        cursor.execute(_ISSUE, {**_parameters(ours), "new": list(task_queue_ids)})
    announce_change()


def announce_change() -> None:
    """Tell that a TaskQueue appeared or went: the priorities of others change by that."""
    announce([InboxEntry(topic=TOPIC, key=0, event_id=0)])


@transaction.atomic
def recompute() -> int:
    """Compute all priorities and places anew; how many tickets have changed.

    Two at once do no harm, the later one counts. Claims and submissions are not held up: nobody
    else writes or locks tickets, except who removes an empty TaskQueue.
    """
    with connection.cursor() as cursor:
        cursor.execute(_PLACE_ALL, _parameters(_parts(task_queue_policy())))
        return int(cursor.rowcount)


def run_cycle(now: datetime, *, last: datetime | None) -> dict[str, Any]:
    """Recompute when TaskQueues appeared or went, or the last time is two minutes ago.

    What is announced while this runs is read in the next cycle. The count of waiting jobs is
    folded in any case.
    """
    with transaction.atomic():
        heard, _ = InboxEntry.objects.filter(topic=TOPIC).delete()
        is_due = last is None or now - last >= _PERIOD
        changed = recompute() if heard or is_due else None
    folded = fold_tally()
    at = now if changed is not None else last
    return {"changed": changed or 0, "folded": folded, "recomputed_at": at and at.isoformat()}


def _parameters(pools: Mapping[Pool, float]) -> dict[str, Any]:
    return {
        "weights": list(JOB_WEIGHTS),
        "groups": [pool.owner_group for pool in pools],
        "owners": [pool.owner for pool in pools],
        "parts": list(pools.values()),
        "least": LEAST_PRIORITY,
    }


def _groups() -> dict[str, Group]:
    rows = accounting.groups_in_draws()
    return {name: Group(share, has_job_sharing) for name, share, has_job_sharing in rows}


def _parts(policy: TaskQueuePolicy) -> dict[Pool, float]:
    present = list(TaskQueue.objects.order_by().values_list("owner_group", "owner_id").distinct())
    return parts(
        present,
        _groups(),
        default_share=policy.default_share,
        feedback=_feedback(policy.max_correction) if policy.uses_feedback else None,
    )


def _feedback(max_correction: float) -> Feedback:
    """Recent use: the real priorities of the submitters, above what who used nothing has."""
    return Feedback(
        {
            (submitter.group, submitter.user_id): submitter.real_priority - BEST_PRIORITY
            for submitter in accounting.submitters()
        },
        max_correction,
    )

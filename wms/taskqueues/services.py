"""Putting jobs into TaskQueues, taking them out, and the claim."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.db import connection, transaction

from matching.needs import Needs, Resource
from wms.core.models import User
from wms.taskqueues.models import TaskQueue, WaitingJob

# Touching the row of an existing TaskQueue takes its lock: `remove_empty` cannot delete it before
# the jobs that are about to join it are committed.
_JOIN = """
INSERT INTO taskqueues_taskqueue
    (key, owner_id, owner_group, cpu_time_s, cores, memory_mb, sites, banned_sites, platforms, tags)
VALUES (%s, %s, %s, %s, %s, %s, %s::varchar[], %s::varchar[], %s::varchar[], %s::varchar[])
ON CONFLICT (key) DO UPDATE SET key = excluded.key
RETURNING id
"""

# One statement draws a TaskQueue and takes a job out of it. `fitting` lists the TaskQueues that
# this resource can serve, the highest CPU segment first and, within it, in the order of the draw:
# -ln(U) / w is an exponential variate, so the chance of being first is in proportion to the
# priority w. The lateral join reads `fitting` in its order and stops at the first TaskQueue that
# has a job which nobody else is claiming at this moment: SKIP LOCKED never waits for another claim.
_CLAIM = """
WITH fitting AS MATERIALIZED (
    SELECT q.id
    FROM taskqueues_taskqueue q
    WHERE q.cpu_time_s <= %(cpu_time_s)s
      AND q.cores <= %(cores)s
      AND q.memory_mb <= %(memory_mb)s
      AND (q.sites = '{}' OR q.sites @> ARRAY[%(site)s]::varchar[])
      AND NOT q.banned_sites @> ARRAY[%(site)s]::varchar[]
      AND (q.platforms = '{}' OR q.platforms @> ARRAY[%(platform)s]::varchar[])
      AND q.tags <@ %(tags)s::varchar[]
      AND EXISTS (SELECT 1 FROM taskqueues_waitingjob w WHERE w.task_queue_id = q.id)
    ORDER BY q.cpu_time_s DESC, -ln(1 - random()) / q.priority
), taken AS (
    SELECT free.job_id
    FROM fitting
    CROSS JOIN LATERAL (
        SELECT w.job_id
        FROM taskqueues_waitingjob w
        WHERE w.task_queue_id = fitting.id
        ORDER BY w.job_id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS free
    LIMIT 1
)
DELETE FROM taskqueues_waitingjob w USING taken WHERE w.job_id = taken.job_id
RETURNING w.job_id
"""


@transaction.atomic
def enqueue(needs_by_job: Mapping[int, Needs]) -> None:
    """Put each job into the TaskQueue whose needs equal its own, making TaskQueues where missing.

    Jobs that wait already stay where they are.
    """
    by_key: dict[str, Needs] = {needs.key(): needs for needs in needs_by_job.values()}
    owners = dict(
        User.objects.filter(username__in={n.owner for n in by_key.values()}).values_list(
            "username", "pk"
        )
    )
    ids: dict[str, int] = {}
    with connection.cursor() as cursor:
        # In the order of the keys, so that two submissions never wait for each other's TaskQueues.
        for key in sorted(by_key):
            n = by_key[key]
            cursor.execute(
                _JOIN,
                [
                    key,
                    owners[n.owner],
                    n.owner_group,
                    n.cpu_time_s,
                    n.cores,
                    n.memory_mb,
                    *(list(words) for words in (n.sites, n.banned_sites, n.platforms, n.tags)),
                ],
            )
            ids[key] = cursor.fetchone()[0]
    WaitingJob.objects.bulk_create(
        [
            WaitingJob(job_id=job, task_queue_id=ids[needs.key()])
            for job, needs in needs_by_job.items()
        ],
        ignore_conflicts=True,
        batch_size=1000,
    )


def withdraw(job_ids: Collection[int]) -> None:
    """Take jobs out of their TaskQueues, so that no claim finds them.

    Whoever changes waiting jobs calls this first and changes the jobs' rows after it: the claim
    takes its locks in the same order, so the two cannot wait for each other.
    """
    WaitingJob.objects.filter(job_id__in=job_ids).delete()


def claim(resource: Resource) -> int | None:
    """Draw a waiting job that this resource can run, and take it out; None when there is none.

    The caller binds the job in the same transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _CLAIM,
            {
                "site": resource.site,
                "cpu_time_s": resource.cpu_time_s,
                "cores": resource.cores,
                "memory_mb": resource.memory_mb,
                "platform": resource.platform,
                "tags": list(resource.tags),
            },
        )
        row = cursor.fetchone()
    return None if row is None else int(row[0])


@transaction.atomic
def remove_empty() -> int:
    """Delete the TaskQueues that no job waits in; return how many.

    A TaskQueue that is being joined at this moment is locked and passed over. The second statement
    looks again under the lock: a job that joined just before it keeps its TaskQueue.
    """
    empty = TaskQueue.objects.filter(waiting_jobs=None)
    locked = list(
        TaskQueue.objects.filter(pk__in=empty.values("pk"))
        .select_for_update(skip_locked=True)
        .values_list("pk", flat=True)
    )
    count, _ = TaskQueue.objects.filter(pk__in=locked, waiting_jobs=None).delete()
    return count

"""The waiting jobs' rows: in, out, and the count that goes with them, in one statement each."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db import connection

from matching.weighted_draws import JOB_WEIGHTS, Law
from wms.core.database.statements import one_line, prepared_rows, whole_numbers

# Jobs that wait already are neither moved nor counted again.
_JOIN = """
WITH joined AS (
    INSERT INTO taskqueues_waitingjob (job_id, task_queue_id, priority, avoided_hosts)
    SELECT job_id, task_queue_id, priority, coalesce(hosts, '{}')
    FROM unnest(%s::bigint[], %s::bigint[], %s::smallint[])
        AS entry(job_id, task_queue_id, priority)
    LEFT JOIN jsonb_to_recordset(%s::jsonb) AS again(job_id bigint, hosts varchar[])
        USING (job_id)
    ON CONFLICT (job_id) DO NOTHING
    RETURNING task_queue_id, priority
)
INSERT INTO taskqueues_tally (task_queue_id, priority, jobs)
SELECT task_queue_id, priority, count(*) FROM joined GROUP BY task_queue_id, priority
"""

# Locked in the order of their ids, as everybody does who takes several.
_LEAVE = """
WITH locked AS MATERIALIZED (
    SELECT job_id FROM taskqueues_waitingjob WHERE job_id = ANY(%s) ORDER BY job_id FOR UPDATE{skip}
), gone AS (
    DELETE FROM taskqueues_waitingjob AS w USING locked WHERE w.job_id = locked.job_id
    RETURNING w.task_queue_id, w.priority
)
INSERT INTO taskqueues_tally (task_queue_id, priority, jobs)
SELECT task_queue_id, priority, -count(*) FROM gone GROUP BY task_queue_id, priority
RETURNING task_queue_id
"""

# The second half of the claim: a priority is drawn, in which every job counts with its weight; of
# that priority the oldest ten are tried in random order. SKIP LOCKED passes over jobs that another
# claim is taking at this moment and never waits for it. Only if all ten are being taken, the next
# free one is looked for, and then the other priorities: a queue with a free job always gives one.
# The range of one priority, in order of priority and id, can be read from one index only: the
# planner is not tempted to walk along the primary key, past the older jobs of other TaskQueues.
# What the taker leaves to others is passed over where the rows are read anyway.
_MAY_TAKE = """(w.avoided_hosts = '{{}}'
    OR %(takes_retries)s AND (NOT %(host)s = ANY(w.avoided_hosts)
        OR w.enqueued_at < now() - make_interval(secs => %(patience_s)s)))"""
_TAKING = """
level AS MATERIALIZED (
    SELECT priority, sum(jobs) AS jobs
    FROM taskqueues_tally WHERE task_queue_id = {queue}
    GROUP BY priority HAVING sum(jobs) > 0
), drawn AS MATERIALIZED (
    SELECT priority FROM level ORDER BY {variate}
), taken AS MATERIALIZED (
    SELECT free.job_id
    FROM drawn
    CROSS JOIN LATERAL (
        SELECT job_id FROM (
            SELECT w.job_id FROM taskqueues_waitingjob AS w
            WHERE w.job_id = ANY(ARRAY(
                SELECT oldest.job_id FROM taskqueues_waitingjob AS oldest
                WHERE oldest.task_queue_id = {queue}
                  AND oldest.priority BETWEEN drawn.priority AND drawn.priority
                ORDER BY oldest.priority, oldest.job_id LIMIT 10
            )) AND MAY_TAKE
            ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED
        ) AS of_ten
        UNION ALL
        SELECT job_id FROM (
            SELECT w.job_id FROM taskqueues_waitingjob AS w
            WHERE w.task_queue_id = {queue}
              AND w.priority BETWEEN drawn.priority AND drawn.priority AND MAY_TAKE
            ORDER BY w.priority, w.job_id LIMIT 1 FOR UPDATE SKIP LOCKED
        ) AS of_all
        LIMIT 1
    ) AS free
    LIMIT 1
), gone AS (
    DELETE FROM taskqueues_waitingjob AS w USING taken WHERE w.job_id = taken.job_id
    RETURNING w.job_id, w.priority
), counted AS (
    INSERT INTO taskqueues_tally (task_queue_id, priority, jobs)
    SELECT {queue}, priority, -1 FROM gone
)
""".replace("MAY_TAKE", _MAY_TAKE)
_HAS_FAILED_AT = """
SELECT EXISTS (
    SELECT FROM taskqueues_waitingjob
    WHERE avoided_hosts <> '{}' AND %(host)s = ANY(avoided_hosts)
)
"""

#: The weights of the job priorities from 0 on.
_WEIGHT = f"(ARRAY[{', '.join(map(repr, JOB_WEIGHTS))}]::float8[])[priority + 1]"
#: `matching.weighted_draws.smallest_of` for the jobs of one priority, each with its weight.
_VARIATES = {
    Law.EXPONENTIAL: f"-ln(1 - random()) / (jobs * {_WEIGHT})",
    Law.UNIFORM: f"(1 - power(1 - random(), 1.0 / jobs)) / {_WEIGHT}",
}
#: The statement for each law; its parameter is `task_queue`.
TAKE_BY = {
    law: one_line(
        f"WITH {_TAKING.format(queue='%(task_queue)s', variate=variate)}"
        "SELECT gone.job_id, (SELECT sum(jobs) FROM level) FROM gone"
    )
    for law, variate in _VARIATES.items()
}
#: The same as a part of a statement that has drawn the TaskQueue `chosen`, if any: the job is then
#: in `gone`, and `level` counts how many there were.
TAKING_OF_CHOSEN = _TAKING.format(
    queue="(SELECT id FROM chosen)", variate=_VARIATES[Law.EXPONENTIAL]
)

# All entries of one TaskQueue and priority become one. Entries that are added meanwhile stay.
_FOLD = """
WITH gone AS (
    DELETE FROM taskqueues_tally WHERE (task_queue_id, priority) IN (
        SELECT task_queue_id, priority FROM taskqueues_tally
        GROUP BY task_queue_id, priority HAVING count(*) > 1 OR sum(jobs) = 0
    )
    RETURNING task_queue_id, priority, jobs
)
INSERT INTO taskqueues_tally (task_queue_id, priority, jobs)
SELECT task_queue_id, priority, sum(jobs) FROM gone
GROUP BY task_queue_id, priority HAVING sum(jobs) <> 0
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """A job that was taken out of its TaskQueue; whether it was seen to be the last one."""

    job_id: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class Taker:
    """The host for which jobs are taken: those that have failed there are left to other hosts.

    One that has waited so long is given all the same. Without `takes_retries` all that have failed
    anywhere are left to others, however long they wait.
    """

    host: str = ""
    patience_s: float = 0.0
    takes_retries: bool = True

    def parameters(self) -> dict[str, Any]:
        """The parameters of the statements that take."""
        return asdict(self)


#: Takes whatever there is.
ANYONE = Taker()


def join(
    job_ids: Sequence[int],
    task_queue_ids: Sequence[int],
    priorities: Sequence[int],
    avoided_hosts: Sequence[Sequence[str]],
) -> None:
    """Let jobs wait in TaskQueues, whose rows the caller has locked against their removal."""
    again = [
        {"job_id": job_id, "hosts": hosts}
        for job_id, hosts in zip(job_ids, avoided_hosts, strict=True)
        if hosts
    ]
    with connection.cursor() as cursor:
        columns = (job_ids, task_queue_ids, priorities)
        cursor.execute(_JOIN, [*map(whole_numbers, columns), json.dumps(again)])


def has_failed_at(host: str) -> bool:
    """Whether any waiting job has failed on this host."""
    return bool(prepared_rows(_HAS_FAILED_AT, {"host": host})[0][0])


def leave(job_ids: Collection[int], *, skips_claimed: bool = False) -> set[int]:
    """Take jobs out of their TaskQueues; the ids of those in which some did wait.

    Waits for claims that are taking some of them at this moment, or passes over these.
    """
    statement = _LEAVE.format(skip=" SKIP LOCKED" if skips_claimed else "")
    with connection.cursor() as cursor:
        cursor.execute(statement, [list(job_ids)])
        return {row[0] for row in cursor.fetchall()}


def take(task_queue_id: int, law: Law, taker: Taker = ANYONE) -> Taken | None:
    """Draw a job of this TaskQueue and take it out; None when there is none for this taker."""
    rows = prepared_rows(TAKE_BY[law], {"task_queue": task_queue_id, **taker.parameters()})
    return Taken(job_id=rows[0][0], is_last=rows[0][1] <= 1) if rows else None


def fold_tally() -> int:
    """Sum up the entries of the count; how many rows are written."""
    with connection.cursor() as cursor:
        cursor.execute(_FOLD)
        return int(cursor.rowcount)

"""SQL of TaskQueues: the claim, and the upkeep of the draw.

All of it is by hand, because jobs join and leave by the thousands and pilots claim all the time:
each of these is one statement where the ORM needs several, or what it cannot express at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from matching.task_queues.needs import Needs
from matching.task_queues.weighted_draws import JOB_WEIGHTS, Law
from wms.core.database.statements import one_line

# In the order of the keys, so that two submissions that make the same TaskQueues do not wait for
# each other in a circle. Those that are there are found by the unique index of their keys.
MAKE_TASK_QUEUES = """
INSERT INTO taskqueues_taskqueue
    (key, owner_id, owner_group, setup, cpu_time_s, cores, max_cores, memory_mb, gpus, sites,
     banned_sites, queues, platforms, pilot_types, submit_pools, middlewares, tags, job_type,
     requirements)
SELECT key, owner_id, owner_group, setup, cpu_time_s, cores, max_cores, memory_mb, gpus, sites,
     banned_sites, queues, platforms, pilot_types, submit_pools, middlewares, tags, job_type,
     requirements
FROM jsonb_to_recordset(%s::jsonb) AS needs(
    key text, owner_id bigint, owner_group text, setup text, cpu_time_s integer, cores integer,
    max_cores integer, memory_mb integer, gpus integer, sites varchar[], banned_sites varchar[],
    queues varchar[], platforms varchar[], pilot_types varchar[], submit_pools varchar[],
    middlewares varchar[], tags varchar[], job_type text, requirements text)
ORDER BY key
ON CONFLICT (key) DO NOTHING
RETURNING id
"""

# The lock keeps `remove_empty` away until the jobs that are about to join are committed. It is
# shared: submissions to one TaskQueue do not wait for each other. Found as those above.
LOCK_TASK_QUEUES = """
SELECT key, id FROM taskqueues_taskqueue WHERE key = ANY(%s) ORDER BY key FOR KEY SHARE
"""

# By the count, which is read in a moment however many jobs wait: by `tally_by_queue`.
FIND_EMPTY = """
SELECT q.id FROM taskqueues_taskqueue AS q
WHERE coalesce(
    (SELECT sum(t.jobs) FROM taskqueues_tally AS t WHERE t.task_queue_id = q.id), 0) <= 0
"""

# Both tables are found by their primary keys.
LOCK_EMPTY = """
SELECT q.id
FROM taskqueues_taskqueue AS q JOIN taskqueues_ticket AS t ON t.task_queue_id = q.id
WHERE q.id = ANY(%s) ORDER BY q.id FOR UPDATE SKIP LOCKED
"""

# A fold that began before the last claim of a TaskQueue may leave entries of it. The count is
# folded, so it is short and read as a whole; TaskQueues are found by the primary key.
REMOVE_STRAY_COUNTS = """
DELETE FROM taskqueues_tally AS t
WHERE NOT EXISTS (SELECT FROM taskqueues_taskqueue AS q WHERE q.id = t.task_queue_id)
"""

# TaskQueues and tickets are found by their primary keys, jobs by `waiting_by_queue_and_age`, the
# count by `tally_by_queue`.
REMOVE_EMPTY = """
WITH gone AS (
    DELETE FROM taskqueues_taskqueue AS q
    WHERE q.id = ANY(%s)
      AND NOT EXISTS (SELECT FROM taskqueues_waitingjob AS w WHERE w.task_queue_id = q.id)
    RETURNING q.id
), uncounted AS (
    DELETE FROM taskqueues_tally AS t USING gone WHERE t.task_queue_id = gone.id
)
DELETE FROM taskqueues_ticket AS t USING gone WHERE t.task_queue_id = gone.id
"""

# A pool's part is spread in proportion to the sum of the jobs' weights. The parts come from
# `matching.task_queues.shares`; owner 0 stands for all owners of a group with job sharing. Emptied
# TaskQueues have the least priority until they are removed.
_PRICED = """
WITH pool AS (
    SELECT * FROM unnest(%(groups)s::text[], %(owners)s::bigint[], %(parts)s::float8[])
        AS pool(owner_group, owner_id, part)
), member AS MATERIALIZED (
    SELECT q.id, q.cpu_time_s, pool.owner_group, pool.owner_id, pool.part
    FROM taskqueues_taskqueue AS q
    JOIN pool ON pool.owner_group = q.owner_group AND pool.owner_id
        = CASE WHEN q.owner_group = ANY(%(sharing)s::text[]) THEN 0 ELSE q.owner_id END
), weighed AS (
    SELECT task_queue_id, sum(jobs * (%(weights)s::float8[])[priority + 1]) AS weight
    FROM taskqueues_tally
    WHERE task_queue_id IN (SELECT id FROM member)
    GROUP BY task_queue_id
), priced AS (
    SELECT member.id, member.cpu_time_s, greatest(%(least)s, member.part * weighed.weight
        / nullif(sum(weighed.weight) OVER (PARTITION BY member.owner_group, member.owner_id), 0)
    ) AS priority
    FROM member LEFT JOIN weighed ON weighed.task_queue_id = member.id
)
"""

# The intervals of a segment begin where the one before ends. None is so short beside the others
# that it would end where it begins, by rounding. Only what has changed is written. All rows are
# read, so no index serves it.
PLACE_ALL = (
    _PRICED
    + """, long_enough AS (
    SELECT id, cpu_time_s,
        greatest(priority, 1e-12 * sum(priority) OVER (PARTITION BY cpu_time_s)) AS priority
    FROM priced
), placed AS (
    SELECT id, priority, coalesce(sum(priority) OVER (
        PARTITION BY cpu_time_s ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS starts_at
    FROM long_enough
)
UPDATE taskqueues_ticket AS t SET priority = placed.priority, starts_at = placed.starts_at
FROM placed
WHERE t.task_queue_id = placed.id
  AND (t.priority, t.starts_at) IS DISTINCT FROM (placed.priority, placed.starts_at)
"""
)

# The members of the pools of new TaskQueues are found by `taskqueue_by_owner`, or all are read.
ISSUE_TICKETS = (
    _PRICED
    + """
INSERT INTO taskqueues_ticket (task_queue_id, cpu_time_s, priority)
SELECT id, cpu_time_s, priority FROM priced WHERE id = ANY(%(new)s)
"""
)

# Two recomputations at once wait for each other, until the end of the transaction.
LOCK_PRIORITIES = "SELECT pg_advisory_xact_lock(hashtext('task-queue-priorities'))"

# After a large submission the planner does not know yet how much there is: then it would take
# nested loops, with a cost that is the product of all by all.
FORBID_NESTED_LOOPS = "SET LOCAL enable_nestloop = off"
ALLOW_NESTED_LOOPS = "SET LOCAL enable_nestloop = DEFAULT"

# Jobs that wait already, found by the primary key, are neither moved nor counted again.
JOIN_TASK_QUEUES = """
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

# Locked in the order of their ids, as everybody does who takes several; found by the primary key.
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
LEAVE_TASK_QUEUES = _LEAVE.format(skip="")
#: Passes over jobs that claims are taking at this moment.
LEAVE_UNLESS_CLAIMED = _LEAVE.format(skip=" SKIP LOCKED")

# Jobs that have failed on the claiming host are passed over where the rows are read anyway.
_MAY_TAKE = """(w.avoided_hosts = '{{}}'
    OR %(takes_retries)s AND (NOT %(host)s = ANY(w.avoided_hosts)
        OR w.enqueued_at < now() - make_interval(secs => %(patience_s)s)))"""

# The second half of the claim: a priority is drawn, in which every job counts with its weight; of
# that priority the oldest ten are tried in random order. SKIP LOCKED passes over jobs that
# another claim is taking at this moment and never waits for it. Only if all ten are being taken,
# the next free one is looked for, and then the other priorities: a queue with a free job always
# gives one. The range of one priority, in order of priority and id, can be read from
# `waiting_by_queue_and_age` only: the planner is not tempted to walk along the primary key, past
# the older jobs of other TaskQueues. The count is found by `tally_by_queue`.
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

# Whether any waiting job has failed on a host; those that have anywhere are in `waiting_again`.
HAS_FAILED_AT = """
SELECT EXISTS (
    SELECT FROM taskqueues_waitingjob
    WHERE avoided_hosts <> '{}' AND %(host)s = ANY(avoided_hosts)
)
"""

# The weights of the job priorities from 0 on.
_WEIGHT = f"(ARRAY[{', '.join(map(repr, JOB_WEIGHTS))}]::float8[])[priority + 1]"

# `matching.task_queues.weighted_draws.smallest_of` for the jobs of one priority, by weight.
_OF_JOBS = {
    Law.EXPONENTIAL: f"-ln(1 - random()) / (jobs * {_WEIGHT})",
    Law.UNIFORM: f"(1 - power(1 - random(), 1.0 / jobs)) / {_WEIGHT}",
}

# The statement for each law; its parameter is `task_queue`.
TAKE_BY = {
    law: one_line(
        f"WITH {_TAKING.format(queue='%(task_queue)s', variate=variate)}"
        "SELECT gone.job_id, (SELECT sum(jobs) FROM level) FROM gone"
    )
    for law, variate in _OF_JOBS.items()
}

# The same as a part of a statement that has drawn the TaskQueue `chosen`, if any: the job is then
# in `gone`, and `level` counts how many there were.
_TAKING_OF_CHOSEN = _TAKING.format(
    queue="(SELECT id FROM chosen)", variate=_OF_JOBS[Law.EXPONENTIAL]
)

# All entries of one TaskQueue and priority become one. Entries that are added meanwhile stay. The
# whole count is read, once; what goes is found by `tally_by_queue`.
FOLD_TALLY = """
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

# The columns of `matching.task_queues.needs.Needs`, in its order.
_NEEDS = ", ".join(
    "u.username" if field.name == "owner" else f"q.{field.name}" for field in fields(Needs)
)

# The conditions of `matching.task_queues.resources.Resource.refusal`, the quickest first.
_ALWAYS = """
    q.cores <= %(cores)s AND q.memory_mb <= %(memory_mb)s AND q.gpus <= %(gpus)s
    AND q.setup = %(setup)s
    AND (q.platforms = '{}' OR %(platform)s = ANY(q.platforms))
    AND q.tags <@ %(tags)s::varchar[]
    AND (q.sites = '{}' OR %(site)s = ANY(q.sites))
    AND NOT %(site)s = ANY(q.banned_sites)
    AND (q.queues = '{}' OR %(queue)s = ANY(q.queues))
    AND (q.pilot_types = '{}' OR %(pilot_type)s = ANY(q.pilot_types))
"""

# What only some resources make a condition, by name. `taskqueue_by_tag` and `taskqueue_by_owner`
# serve the first three.
_SOMETIMES = {
    "required_tags": "q.tags @> %(required_tags)s::varchar[]",
    "owner": "q.owner_id = (SELECT id FROM core_user WHERE username = %(owner)s)",
    "owner_groups": "q.owner_group = ANY(%(owner_groups)s::text[])",
    "excluded": """NOT EXISTS (
        SELECT FROM unnest(%(excluded_types)s::text[], %(excluded_groups)s::text[])
            AS kind(job_type, owner_group)
        WHERE kind.job_type IN ('', q.job_type) AND kind.owner_group IN ('', q.owner_group))""",
    "tried": "q.id <> ALL(%(tried)s::bigint[])",
    "failed": "q.requirements <> ALL(%(failed)s::text[])",
    "hopeless": """(q.requirements = '' OR q.owner_id NOT IN (
        SELECT id FROM core_user WHERE username = ANY(%(hopeless)s::text[])))""",
    "is_plain": "q.requirements = ''",
}

# The tickets of a segment lie side by side, each as long as its TaskQueue's priority. A random
# point in their sum hits one of them in proportion to its priority, found by `ticket_by_place`
# however many there are. A point that hits a TaskQueue that does not fit, or a gap that a removed
# one left, is drawn again: so those that fit keep their proportions among each other. Tickets
# without a place yet are few; they lie behind the others. The points are looked at one after the
# other, because the scalar subquery stands in the list of columns, and only up to the first hit.
# Where nothing else is to be asked, the job is taken in the same statement.
SAMPLE = """
WITH top AS MATERIALIZED (
    SELECT max(cpu_time_s) AS cpu_time_s FROM taskqueues_ticket WHERE cpu_time_s <= %(cpu_time_s)s
), fresh AS MATERIALIZED (
    SELECT id, priority, sum(priority) OVER (ORDER BY id) AS ends_at
    FROM (
        SELECT task_queue_id AS id, priority FROM taskqueues_ticket
        WHERE cpu_time_s = (SELECT cpu_time_s FROM top) AND starts_at IS NULL
        LIMIT %(fresh)s
    ) AS unplaced
), whole AS MATERIALIZED (
    SELECT coalesce((
            SELECT t.starts_at + t.priority FROM taskqueues_ticket AS t
            WHERE t.cpu_time_s = (SELECT cpu_time_s FROM top) AND t.starts_at IS NOT NULL
            ORDER BY t.starts_at DESC LIMIT 1
        ), 0) AS placed,
        coalesce((SELECT max(ends_at) FROM fresh), 0) AS fresh
), sampled AS MATERIALIZED (
    SELECT random() * (placed + fresh) AS point FROM whole, generate_series(1, %(points)s)
), hit AS MATERIALIZED (
    SELECT id FROM (
        SELECT (
            SELECT q.id FROM taskqueues_taskqueue AS q
            WHERE q.id = coalesce((
                SELECT CASE WHEN sampled.point < t.starts_at + t.priority THEN t.task_queue_id END
                FROM taskqueues_ticket AS t
                WHERE t.cpu_time_s = (SELECT cpu_time_s FROM top) AND t.starts_at <= sampled.point
                ORDER BY t.starts_at DESC LIMIT 1
            ), (
                SELECT id FROM fresh, whole
                WHERE sampled.point - placed >= fresh.ends_at - fresh.priority
                  AND sampled.point - placed < fresh.ends_at
                LIMIT 1
            )) AND {fits}
        ) AS id
        FROM sampled
        OFFSET 0
    ) AS points
    WHERE id IS NOT NULL
    LIMIT 1
), chosen AS MATERIALIZED (
    SELECT q.id FROM hit JOIN taskqueues_taskqueue AS q ON q.id = hit.id
    WHERE %(at_once)s AND q.requirements = ''
      AND NOT EXISTS (SELECT FROM taskqueues_taskqueuepolicy WHERE law <> 'exponential')
), {taking}
SELECT top.cpu_time_s, (SELECT law FROM taskqueues_taskqueuepolicy WHERE id = 1),
    (SELECT job_id FROM gone), (SELECT sum(jobs) FROM level), q.id, {needs}
FROM top LEFT JOIN (hit
    JOIN taskqueues_taskqueue AS q ON q.id = hit.id JOIN core_user AS u ON u.id = q.owner_id
) ON true
"""

# Every TaskQueue between two segments is looked at, by `taskqueue_by_segment`: for resources that
# few of them fit, which points hit too rarely, and for the other law, which has no such
# intervals.
_SCAN = """
SELECT q.id, {needs}
FROM taskqueues_taskqueue AS q
JOIN taskqueues_ticket AS t ON t.task_queue_id = q.id
JOIN core_user AS u ON u.id = q.owner_id
WHERE q.cpu_time_s BETWEEN %(least_s)s AND %(segment_s)s AND {fits}
ORDER BY q.cpu_time_s DESC, VARIATE
LIMIT %(ahead)s
"""

# `matching.task_queues.weighted_draws.variate`.
_OF_TASK_QUEUES = {
    Law.EXPONENTIAL: "-ln(1 - random()) / t.priority",
    Law.UNIFORM: "random() / t.priority",
}
SCAN_BY = {law: _SCAN.replace("VARIATE", variate) for law, variate in _OF_TASK_QUEUES.items()}


def fitting(statement: str, conditions: Iterable[str]) -> str:
    """`SAMPLE` or one of `SCAN_BY`, with these conditions beside those that there always are."""
    fits = " AND ".join([_ALWAYS, *(_SOMETIMES[name] for name in conditions)])
    return one_line(statement.format(fits=fits, needs=_NEEDS, taking=_TAKING_OF_CHOSEN))

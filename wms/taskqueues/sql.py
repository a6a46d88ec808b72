"""SQL of TaskQueues: make and remove them, jobs join, move and leave, priorities, sums of counts.

All of it is by hand, because jobs join and leave by the thousands: each of these is one statement
where the ORM needs several, or what it cannot express at all. That of claims is in `draws`.
"""

from __future__ import annotations

# In the order of the keys, so that two submissions that make the same TaskQueues do not wait for
# each other in a circle. Those that are there are found by the unique index of their keys.
MAKE_TASK_QUEUES = """
INSERT INTO taskqueues_taskqueue
    (key, owner_id, owner_group, setup, cpu_time_s, cores, max_cores, memory_mb, gpus, sites,
     banned_sites, queues, platforms, pilot_types, submit_pools, middlewares, tags, job_type,
     requirements, disk_mb, limits)
SELECT key, owner_id, owner_group, setup, cpu_time_s, cores, max_cores, memory_mb, gpus, sites,
     banned_sites, queues, platforms, pilot_types, submit_pools, middlewares, tags, job_type,
     requirements, disk_mb, limits
FROM jsonb_to_recordset(%s::jsonb) AS needs(
    key text, owner_id bigint, owner_group text, setup text, cpu_time_s integer, cores integer,
    max_cores integer, memory_mb integer, gpus integer, sites varchar[], banned_sites varchar[],
    queues varchar[], platforms varchar[], pilot_types varchar[], submit_pools varchar[],
    middlewares varchar[], tags varchar[], job_type text, requirements text,
    disk_mb integer, limits varchar[])
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
# `matching.task_queues.priority_shares`; owner 0 stands for all owners of a group with job sharing.
# Emptied TaskQueues have the least priority until they are removed.
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
    INSERT INTO taskqueues_waitingjob
        (job_id, task_queue_id, priority, avoided_hosts, input_set_id, input_version)
    SELECT job_id, task_queue_id, priority, coalesce(hosts, '{}'), input_set,
        coalesce(input_version, 0)
    FROM unnest(%s::bigint[], %s::bigint[], %s::smallint[])
        AS entry(job_id, task_queue_id, priority)
    LEFT JOIN jsonb_to_recordset(%s::jsonb) AS rest(
        job_id bigint, hosts varchar[], input_set bigint, input_version integer
    ) USING (job_id)
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

# Locked by ascending id, passing over those that claims or holds have; found by the primary key.
# One that stays where it is may have been told of another version of its inputs.
MOVE_WAITING = """
WITH locked AS MATERIALIZED (
    SELECT w.job_id, w.task_queue_id, entry.target, entry.version, w.priority
    FROM taskqueues_waitingjob AS w
    JOIN unnest(%s::bigint[], %s::bigint[], %s::integer[]) AS entry(job_id, target, version)
        ON entry.job_id = w.job_id
    WHERE (entry.target, entry.version) <> (w.task_queue_id, w.input_version)
    ORDER BY w.job_id FOR UPDATE OF w SKIP LOCKED
), moved AS (
    UPDATE taskqueues_waitingjob AS w
    SET task_queue_id = locked.target, input_version = locked.version
    FROM locked WHERE w.job_id = locked.job_id
)
INSERT INTO taskqueues_tally (task_queue_id, priority, jobs)
SELECT side.id, priority, sum(side.jobs)
FROM locked, LATERAL (VALUES (locked.task_queue_id, -1), (locked.target, 1)) AS side(id, jobs)
WHERE locked.target <> locked.task_queue_id
GROUP BY side.id, priority RETURNING task_queue_id
"""

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

"""SQL of claims: the draw of a TaskQueue that fits, and of a job in it, which is taken out.

By hand, because pilots claim all the time: each of these is one statement where the ORM needs
several.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from matching.task_queues.needs import Needs
from matching.task_queues.weighted_draws import JOB_WEIGHTS, Law
from wms.core.database.statements import one_line

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

# The columns of `matching.task_queues.needs.Needs`, in its order.
_NEEDS = ", ".join(
    "u.username" if field.name == "owner" else f"q.{field.name}" for field in fields(Needs)
)

# The conditions of `matching.task_queues.resources.Resource.refusal`, the quickest first.
_ALWAYS = """
    q.cores <= %(cores)s AND q.memory_mb <= %(memory_mb)s AND q.gpus <= %(gpus)s
    AND q.disk_mb <= %(disk_mb)s AND q.setup = %(setup)s
    AND (q.platforms = '{}' OR %(platform)s = ANY(q.platforms))
    AND q.tags <@ %(tags)s::varchar[]
    AND (q.sites = '{}' OR %(site)s = ANY(q.sites))
    AND NOT %(site)s = ANY(q.banned_sites)
    AND (q.queues = '{}' OR %(queue)s = ANY(q.queues))
    AND (q.pilot_types = '{}' OR %(pilot_type)s = ANY(q.pilot_types))
"""

# Needs by which jobs are left out that a start expression refuses: kinds of jobs, each with a value
# for what the expression looks at, and none for the rest. They are few.
_ALIKE = {
    "owner": "text",
    "owner_group": "text",
    "cores": "integer",
    "memory_mb": "integer",
    "gpus": "integer",
    "cpu_time_s": "integer",
    "job_type": "text",
}
_KINDS = ", ".join(f"%(alike_{name})s::{kind}[]" for name, kind in _ALIKE.items())
_OWNER_IS = "q.owner_id = (SELECT id FROM core_user WHERE username = kind.owner)"
_IS_ALIKE = " AND ".join(
    f"(kind.{name} IS NULL OR {_OWNER_IS if name == 'owner' else f'q.{name} = kind.{name}'})"
    for name in _ALIKE
)

# What only some resources make a condition, by name. `taskqueue_by_tag` and `taskqueue_by_owner`
# serve the first three.
_SOMETIMES = {
    "required_tags": "q.tags @> %(required_tags)s::varchar[]",
    "owner": "q.owner_id = (SELECT id FROM core_user WHERE username = %(owner)s)",
    "owner_groups": "q.owner_group = ANY(%(owner_groups)s::text[])",
    "foreign_groups": "q.owner_group <> ALL(%(foreign_groups)s::text[])",
    "refused_owners": """q.owner_id NOT IN (
        SELECT id FROM core_user WHERE username = ANY(%(refused_owners)s::text[]))""",
    "refused_groups": "q.owner_group <> ALL(%(refused_groups)s::text[])",
    "excluded": """NOT EXISTS (
        SELECT FROM unnest(%(excluded_types)s::text[], %(excluded_groups)s::text[],
                %(excluded_limits)s::text[])
            AS kind(job_type, owner_group, used)
        WHERE kind.job_type IN ('', q.job_type) AND kind.owner_group IN ('', q.owner_group)
            AND (kind.used = '' OR kind.used = ANY(q.limits)))""",
    "alike": f"""NOT EXISTS (
        SELECT FROM unnest({_KINDS}) AS kind({", ".join(_ALIKE)}) WHERE {_IS_ALIKE})""",
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
    WHERE %(at_once)s AND q.requirements = '' AND q.limits = '{{}}'
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

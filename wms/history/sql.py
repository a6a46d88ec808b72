"""SQL of the history: store and read bins of round-robin archives, count events per minute.

Also up to when nothing can be added to these counts any more.
"""

from __future__ import annotations

# A sample joins the bin of its time if that is there already, else it overwrites what the ring
# held one turn ago; an older sample than the bin's own time changes nothing. But a bin of a time
# to come was stored while a clock was ahead; it would keep others out of its place for as long as
# that was. One statement for all series of an archive, by hand because the ORM's upsert cannot
# combine the old row with the new one. The bins are found by `bin_unique`.
STORE_SAMPLES = """
INSERT INTO history_bin AS bin
    (series_id, archive, slot, start, count, total, minimum, maximum, last, last_at)
SELECT sample.series_id, %(archive)s, %(slot)s, %(start)s, 1, value, value, value, value, %(at)s
FROM unnest(%(series)s::bigint[], %(values)s::float8[]) AS sample(series_id, value)
ON CONFLICT (series_id, archive, slot) DO UPDATE SET
    start = excluded.start,
    count = CASE WHEN bin.start = excluded.start THEN bin.count + 1 ELSE 1 END,
    total = CASE WHEN bin.start = excluded.start
        THEN bin.total + excluded.total ELSE excluded.total END,
    minimum = CASE WHEN bin.start = excluded.start
        THEN least(bin.minimum, excluded.minimum) ELSE excluded.minimum END,
    maximum = CASE WHEN bin.start = excluded.start
        THEN greatest(bin.maximum, excluded.maximum) ELSE excluded.maximum END,
    last = CASE WHEN bin.start = excluded.start AND bin.last_at > excluded.last_at
        THEN bin.last ELSE excluded.last END,
    last_at = CASE WHEN bin.start = excluded.start
        THEN greatest(bin.last_at, excluded.last_at) ELSE excluded.last_at END
WHERE bin.start <= excluded.start OR bin.start > statement_timestamp()
"""

# What was counted anew replaces what was counted before, so that counting twice changes nothing.
_REPLACE = """
ON CONFLICT (series_id, archive, slot) DO UPDATE SET
    start = excluded.start, count = excluded.count, total = excluded.total,
    minimum = excluded.minimum, maximum = excluded.maximum, last = excluded.last,
    last_at = excluded.last_at, counts = excluded.counts
WHERE bin.start <= excluded.start OR bin.start > statement_timestamp()
"""

# What the next two write.
_COLUMNS = """
INSERT INTO history_bin AS bin
    (series_id, archive, slot, start, count, total, minimum, maximum, last, last_at, counts)
"""

# By hand because the ORM's upsert has no condition. The bins are found by `bin_unique`.
STORE_COUNTS = f"""
{_COLUMNS}
SELECT series_id, 0, slot, start, count, total, minimum, maximum, maximum, start, counts::int[]
FROM unnest(
    %(series)s::bigint[], %(slots)s::int[], %(starts)s::timestamptz[], %(counts)s::int[],
    %(totals)s::float8[], %(minima)s::float8[], %(maxima)s::float8[], %(classes)s::text[]
) AS counted(series_id, slot, start, count, total, minimum, maximum, counts)
{_REPLACE}
"""

# The bins of an archive from those of the next finer one, so that sums are the same in both; by
# hand because the ORM cannot insert what a query selects. The finer bins are found by
# `bin_unique`, by their places in the ring, of which some hold what is older.
FOLD_BINS = f"""
WITH finer AS (
    SELECT *, floor(extract(epoch FROM start) / %(step)s)::bigint AS number
    FROM history_bin
    WHERE series_id = ANY(%(series)s::bigint[]) AND archive = %(archive)s - 1
        AND slot = ANY(%(slots)s::int[]) AND start >= %(since)s AND start <= %(until)s
), classes AS (
    SELECT series_id, number, array_agg(many ORDER BY place) AS counts
    FROM (
        SELECT series_id, number, place, sum(many)::int AS many
        FROM finer, unnest(counts) WITH ORDINALITY AS class(many, place)
        GROUP BY series_id, number, place
    ) AS added
    GROUP BY series_id, number
), folded AS (
    SELECT series_id, number, sum(count)::int AS count, sum(total) AS total,
        min(minimum) AS minimum, max(maximum) AS maximum,
        (array_agg(last ORDER BY start DESC))[1] AS last, max(last_at) AS last_at
    FROM finer
    GROUP BY series_id, number
)
{_COLUMNS}
SELECT series_id, %(archive)s, number %% %(turn)s, to_timestamp(number * %(step)s),
    count, total, minimum, maximum, last, last_at, counts
FROM folded LEFT JOIN classes USING (series_id, number)
ORDER BY series_id, number
{_REPLACE}
"""

# The bins that the next two read.
_FROM = """
FROM history_series AS series
JOIN history_bin AS bin ON bin.series_id = series.id
WHERE series.name = ANY(%(names)s) AND bin.archive = %(archive)s
    AND bin.start >= %(since)s AND bin.start < %(until)s
"""

# By hand as the next one, of which it is the plain case. The bins are found by the index of their
# series' names and by `bin_unique`.
READ_BINS = f"""
SELECT series.name, extract(epoch FROM bin.start)::bigint, minimum, total / count, maximum, count,
    last, total, counts
{_FROM}
ORDER BY bin.start
"""

# Bins taken together; of arrays the largest is that with the largest first element, which the ORM
# cannot express. The bins are found as those of `READ_BINS`.
READ_POINTS = f"""
SELECT name, number * %(step)s, minimum, total / samples, maximum, samples, latest[2], total
FROM (
    SELECT series.name, floor(extract(epoch FROM bin.start) / %(step)s)::bigint AS number,
        min(minimum) AS minimum, max(maximum) AS maximum, sum(count)::int AS samples,
        sum(total) AS total, max(ARRAY[extract(epoch FROM bin.start)::float8, last]) AS latest
    {_FROM}
    GROUP BY 1, 2
) AS joined
ORDER BY number
"""

# The largest series of a quantity, and all others together: so that an answer has a bounded number
# of lines however many sites there are. By hand because the ORM cannot rank what it sums in the
# same statement. The bins are found by `bin_unique`, those of some 800 points a series.
READ_RANKED = """
WITH points AS (
    SELECT series.name, floor(extract(epoch FROM bin.start) / %(step)s)::bigint AS number,
        CASE WHEN %(is_level)s THEN sum(total) / sum(count) ELSE sum(total) END AS value
    FROM history_series AS series
    JOIN history_bin AS bin ON bin.series_id = series.id
    WHERE series.name LIKE %(pattern)s AND bin.archive = %(archive)s
        AND bin.start >= %(since)s AND bin.start < %(until)s
    GROUP BY 1, 2
), ranked AS (
    SELECT name, row_number() OVER (ORDER BY sum(value) DESC, name) AS place
    FROM points
    GROUP BY name HAVING sum(value) > 0
)
SELECT least(place, %(top)s + 1), min(name), number * %(step)s, sum(value), max(place)
FROM points JOIN ranked USING (name)
GROUP BY 1, 3
ORDER BY 1, 3
"""

# Events are written in the transaction of the change, with the time of its statement. By hand,
# because the ORM cannot join the one attempt that an event is about. The events are found by
# `jobevent_by_time`, `job_by_time` and `attempt_by_start`, the attempts by `attempt_number_unique`.
COUNT_EVENTS = """
SELECT date_trunc('minute', event.created_at AT TIME ZONE 'UTC') AS minute, event.event,
    attempt.site_name, attempt.why, count(*)
FROM jobs_loggedjobevent AS event
LEFT JOIN LATERAL (
    SELECT site_name, CASE
        WHEN stopped_by = 'watchdog' THEN 'watchdog'
        WHEN stopped_by = 'pilot_time' THEN 'pilot_time'
        WHEN stopped_by = 'preemption' THEN 'preempted'
        WHEN outcome = 'not_run' THEN 'not_run'
        WHEN outcome = 'lost' THEN 'pilot_lost'
        WHEN outcome = 'killed' OR stopped_by <> '' THEN 'stopped'
        WHEN signal IS NOT NULL THEN 'signal'
        WHEN exit_code <> 0 THEN 'exit_code'
        WHEN event.cause = 'outputs' THEN 'output_missing'
        ELSE 'other' END AS why
    FROM jobs_attempt
    WHERE job_id = event.job_id AND matched_at <= event.created_at
        AND event.event IN ('fail', 'reschedule', 'complete', 'start')
    ORDER BY number DESC LIMIT 1
) AS attempt ON true
WHERE event.created_at >= %(since)s AND event.created_at < %(until)s
    AND event.event = ANY(%(events)s)
GROUP BY 1, 2, 3, 4
"""

# Apart from the statement before, so that only who has frontends pays for the way from an event to
# its group; by hand as that one, whose view of events it reads: they are found by the same indexes,
# jobs and workspaces by their ids, groups by their names. The limit of 1 keeps the planner, which
# takes a few minutes for many events, from reading all jobs.
COUNT_EVENTS_OF_FRONTENDS = """
SELECT date_trunc('minute', event.created_at AT TIME ZONE 'UTC') AS minute, event.event,
    coalesce(belonging.frontend_id, 0), count(*)
FROM jobs_loggedjobevent AS event
CROSS JOIN LATERAL (
    SELECT workspace.owner_group
    FROM jobs_job AS job JOIN jobs_workspace AS workspace ON workspace.id = job.workspace_id
    WHERE job.id = event.job_id
    LIMIT 1
) AS named
LEFT JOIN accounting_accountinggroup AS belonging ON belonging.name = named.owner_group
WHERE event.created_at >= %(since)s AND event.created_at < %(until)s
    AND event.event = ANY(%(events)s)
    AND coalesce(belonging.frontend_id, 0) = ANY(%(frontends)s::bigint[])
GROUP BY 1, 2, 3
"""

# A job waits from when it joined a TaskQueue last. Classes are those of
# `matching.round_robin_archives`. By hand for the join of one earlier event. The events are found
# by `jobevent_by_time` and `attempt_by_start`, the earlier ones by the indexes of the jobs.
COUNT_WAITED = """
SELECT minute, class, count(*), sum(waited), min(waited), max(waited)
FROM (
    SELECT minute, waited, CASE WHEN waited < 1 THEN 0
        ELSE floor(ln(waited) / ln(%(ratio)s))::int + 1 END AS class
    FROM (
        SELECT date_trunc('minute', event.created_at AT TIME ZONE 'UTC') AS minute,
            greatest(0, extract(epoch FROM event.created_at - queued.created_at))::float8 AS waited
        FROM jobs_loggedjobevent AS event
        CROSS JOIN LATERAL (
            SELECT created_at FROM jobs_loggedjobevent
            WHERE job_id = event.job_id AND id < event.id
                AND event IN ('enqueue', 'requeue', 'release')
            ORDER BY id DESC LIMIT 1
        ) AS queued
        WHERE event.created_at >= %(since)s AND event.created_at < %(until)s
            AND event.event = 'start'
    ) AS started
) AS classed
GROUP BY minute, class
"""

# By hand as the two above, with whose minutes its own agree. The cycles are found by the index of
# their beginnings.
COUNT_MATCHES = """
SELECT date_trunc('minute', started_at AT TIME ZONE 'UTC'), sum(matches)
FROM dags_negotiationcycle
WHERE started_at >= %(since)s AND started_at < %(until)s AND matches > 0
GROUP BY 1
"""

# A transaction that is open now may still add events of any time since it began; one that has
# changed nothing yet, of any time since its statement began. By hand: no model stands for what
# the server tells of its sessions, which are few and have no index.
FIND_SETTLED = """
SELECT statement_timestamp(), least(statement_timestamp(), (
    SELECT min(CASE WHEN backend_xid IS NULL THEN query_start ELSE xact_start END)
    FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend'
        AND pid <> pg_backend_pid() AND (backend_xid IS NOT NULL OR state = 'active')
))
"""

# The newest of the few bins of the last minutes that may hold a sample. By hand because the ORM
# would sort whole bins. They are found by the index of their series' names and by `bin_unique`.
READ_LATEST = """
SELECT DISTINCT ON (series.name) series.name, bin.last, bin.last_at
FROM history_series AS series
JOIN history_bin AS bin ON bin.series_id = series.id
WHERE series.name = ANY(%(names)s) AND bin.archive = 0 AND bin.slot = ANY(%(slots)s::int[])
    AND bin.start >= %(since)s AND bin.last_at IS NOT NULL
ORDER BY series.name, bin.start DESC
"""

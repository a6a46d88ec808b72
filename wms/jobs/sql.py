"""SQL of jobs: insert thousands with their descriptions, lock limits and scopes, count running.

Scopes are the sites of jobs bound at the claim. Also the statements of pilots' claims and reports,
those of concurrency limits, and the folding of the sizes of outputs and of stored files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from wms.core.database.statements import one_line

# By hand: the ORM knows no sequences. Ids are known before the rows are sent, so that nobody
# waits for these. No table is read.
# The numbers come as first and last of each stretch without a gap: mostly it is one.
RESERVE_JOB_IDS = """
SELECT min(id), max(id)
FROM (
    SELECT id, id - row_number() OVER (ORDER BY id) AS stretch
    FROM (
        SELECT nextval(sequence) AS id
        FROM (
            SELECT pg_get_serial_sequence('jobs_job', 'id')::regclass AS sequence OFFSET 0
        ) AS named, generate_series(1, %s)
    ) AS reserved
) AS numbered
GROUP BY stretch
ORDER BY min(id)
"""

# By hand, as all that comes with thousands of jobs. By the unique index of the keys.
FIND_DESCRIPTIONS = "SELECT key, id FROM jobs_jobdescription WHERE key = ANY(%s)"

# Who may write descriptions with these keys: whoever holds the locks, until the end of the
# transaction. A lock is for many keys, so that few are held. No table is read.
CLAIM_KEYS = """
SELECT key, pg_try_advisory_xact_lock(hashtext('job-descriptions'), get_byte(key, 0))
FROM unnest(%s::bytea[]) AS key
"""

# One that is there was committed since it was looked for; nobody is waited for, since `CLAIM_KEYS`
# lets one at a time write a key.
INSERT_DESCRIPTIONS = """
INSERT INTO jobs_jobdescription (key, content)
SELECT key, content FROM unnest(%s::bytea[], %s::jsonb[]) AS given(key, content)
ON CONFLICT (key) DO NOTHING
RETURNING key, id
"""

# By hand because the ORM writes a parameter for each column of each row. The rows travel as one
# JSON value, which is several times as fast. No table is read. Each tells its first event. A row
# that has no origin of its own has that of all.
INSERT_JOBS = """
INSERT INTO jobs_job
    (id, name, owner_id, workspace_id, state, state_reason, description_id, own, has_periodic,
     priority, max_attempts, attempt_number, topic, topic_key, cluster_id, process,
     enqueue_event, submitted_by)
SELECT job.id, job.name, coalesce(job.owner, %(owner)s), coalesce(job.workspace, %(workspace)s),
     %(state)s, '', job.description_id, job.own,
     coalesce(job.has_periodic, false), coalesce(job.priority, 1), job.max_attempts, 0,
     %(topic)s, coalesce(job.topic_key, %(topic_key)s), job.cluster_id, job.process,
     nextval('jobs_jobevent_id_seq'), %(submitted_by)s
FROM jsonb_to_recordset(%(jobs)s::jsonb) AS job(
    id bigint, name text, description_id bigint, own jsonb, has_periodic boolean,
    priority smallint, max_attempts smallint, cluster_id bigint, process integer,
    owner bigint, workspace bigint, topic_key bigint)
"""

# By hand, because every claim reads them, and most installations have few or none. So few that no
# index serves them; the sites are found by their primary key.
READ_LIMITS = """
SELECT limits.id, coalesce(site.name, ''), limits.job_type, limits.owner_group, limits.maximum,
       limits.min_interval_s, limits.last_match_at
FROM jobs_runninglimit AS limits LEFT JOIN sites_site AS site ON site.id = limits.site_id
"""

# Those that count at a site, as a claim reads them without a lock.
READ_LIMITS_AT = one_line(f"{READ_LIMITS} WHERE limits.site_id IS NULL OR site.name = %(site)s")

# In the order of the ids, as everybody locks them; found by the primary key. The other one passes
# over those that other claims use now.
LOCK_LIMITS = f"{READ_LIMITS} WHERE limits.id = ANY(%s) ORDER BY limits.id FOR UPDATE OF limits"
LOCK_FREE_LIMITS = f"{LOCK_LIMITS} SKIP LOCKED"

# Number of open attempts of a limit's kind. Not counted beyond the maximum: more is as bad. By
# hand, as a claim counts for several limits at once. The attempts are found by
# `attempt_open_by_kind`.
COUNT_RUNNING = """
SELECT %s::bigint, count(*)
FROM (SELECT 1 FROM jobs_attempt WHERE outcome = ''{conditions} LIMIT %s) AS running
"""


def count_running(limits: Iterable[Collection[str]]) -> str:
    """`COUNT_RUNNING` for several limits in one; each is told by the columns that it names.

    The parameters of each are its id, the values of these columns and its maximum.
    """
    return " UNION ALL ".join(
        COUNT_RUNNING.format(conditions="".join(f" AND {name} = %s" for name in columns))
        for columns in limits
    )


# By hand: the ORM knows no shared locks. In the order of the ids; found by the primary key.
LOCK_SCOPES = """
SELECT id, sites_id FROM jobs_sitescope WHERE id = ANY(%s) ORDER BY id FOR SHARE
"""

# By hand: the ORM knows no shared locks. In the order of the ids; found by the unique index of the
# keys.
LOCK_INPUT_SETS = """
SELECT key, id, version, sites FROM jobs_inputset WHERE key = ANY(%s) ORDER BY id FOR SHARE
"""

# By hand: the ORM knows no advisory locks, nor the keys of JSON in a partial index. The name is
# locked, not a row: a limit may be given to a whole family of names.
LOCK_NAME = "SELECT pg_advisory_xact_lock(hashtext('concurrency-limit'), hashtext(%s))"
LOCK_FREE_NAME = "SELECT pg_try_advisory_xact_lock(hashtext('concurrency-limit'), hashtext(%s))"

# The open attempts that use a limit are few, and found by `attempt_with_limits`.
USE_OF_LIMITS = """
SELECT name, sum((attempt.limits->>name)::float8)
FROM unnest(%s::text[]) AS name
JOIN jobs_attempt AS attempt ON attempt.outcome = '' AND attempt.limits ? name
GROUP BY name
"""

# TaskQueues whose jobs use limits are few, and found by `taskqueue_with_limits`.
LIMITS_OF_WAITING_JOBS = """
SELECT DISTINCT unnest(limits) FROM taskqueues_taskqueue WHERE limits <> '{}'
"""

# Statements of each job in its pilot. By hand, because to write them takes the ORM longer than the
# answer takes PostgreSQL: they stay prepared (`wms.jobs.prepared_statements`). The job is found by
# its primary key, and its description by its own.
FIND_JOB = """
SELECT {job}, {description}
FROM jobs_job AS job JOIN jobs_jobdescription AS description ON description.id = job.description_id
WHERE job.id = %(job_id)s
"""

# The job and its description by their primary keys, the attempt by `attempt_number_unique`. What
# the attempt's row says is read after the lock, by the next one.
LOCK_JOB_OF_ATTEMPT = """
SELECT {job}, {description}
FROM jobs_job AS job JOIN jobs_jobdescription AS description ON description.id = job.description_id
JOIN jobs_attempt AS attempt ON attempt.job_id = job.id
WHERE job.id = %(job_id)s AND attempt.number = %(number)s AND attempt.pilot_id = %(pilot_id)s
FOR UPDATE OF job
"""

# By `attempt_number_unique`, its files by `attempt_file_unique`.
FIND_ATTEMPT = """
SELECT {attempt}, (
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'kind', file.kind, 'path', file.path, 'blob', file.blob_id) ORDER BY file.id), '[]')::text
    FROM jobs_attemptfile AS file WHERE file.attempt_id = attempt.id)
FROM jobs_attempt AS attempt
WHERE attempt.job_id = %(job_id)s AND attempt.number = %(number)s
    AND attempt.pilot_id = %(pilot_id)s
"""

# By the index of the attempts' pilots. Keys of before are not in the stored form.
FIND_ATTEMPTS_OF_CLAIM = """
SELECT {attempt} FROM jobs_attempt AS attempt
WHERE attempt.pilot_id = %(pilot_id)s
    AND (attempt.outcome = '' OR attempt.claim_key IN (%(claim_key)s, %(stored_key)s))
"""

# By the primary key. A start that was not reported was so long ago as the payload took. What has
# ended is accounted later.
END_ATTEMPT = """
WITH written AS (
    UPDATE jobs_attempt SET started_at = coalesce(started_at, %(began_at)s),
        exit_code = %(exit_code)s, signal = %(signal)s, wall_s = %(wall_s)s, cpu_s = %(cpu_s)s,
        max_rss_mb = %(max_rss_mb)s, stopped_by = %(stopped_by)s, usage = %(usage)s,
        outcome = %(outcome)s, reason = %(reason)s, ended_at = %(ended_at)s
    WHERE id = %(attempt_id)s
    RETURNING id, outcome
), ended AS (
    INSERT INTO jobs_endedattempt (attempt_id) SELECT id FROM written WHERE outcome <> ''
)
SELECT true FROM written
"""

# For attempts that end together, before they do; the caller has locked their jobs. By hand, because
# the ORM cannot insert what it selects. By `job_open_or_done_once`.
NOTE_ENDS = """
INSERT INTO jobs_endedattempt (attempt_id)
SELECT id FROM jobs_attempt WHERE job_id = ANY(%s::bigint[]) AND outcome = ''
"""

# By hand: the ORM cannot tell what it has removed. The oldest, by the primary key; who does it at
# the same time passes over them.
TAKE_ENDED_ATTEMPTS = """
DELETE FROM jobs_endedattempt WHERE attempt_id IN (
    SELECT attempt_id FROM jobs_endedattempt ORDER BY attempt_id LIMIT %s FOR UPDATE SKIP LOCKED)
RETURNING attempt_id
"""

# By hand because the ORM's upsert cannot add the old row to the new one. In the order of the keys,
# so that two who add at once do not wait for each other in a circle. The row of the same key is
# found by `topic_use_unique`.
ADD_TOPIC_USES = """
INSERT INTO jobs_topicuse AS known
    (topic, topic_key, useful_s, failed_s, lost_s, done_count, failed_count, lost_count)
SELECT * FROM unnest(%s::text[], %s::bigint[], %s::float8[], %s::float8[], %s::float8[],
                     %s::bigint[], %s::bigint[], %s::bigint[]) AS new(topic, topic_key)
ORDER BY topic, topic_key
ON CONFLICT (topic, topic_key) DO UPDATE SET
    useful_s = known.useful_s + excluded.useful_s,
    failed_s = known.failed_s + excluded.failed_s,
    lost_s = known.lost_s + excluded.lost_s,
    done_count = known.done_count + excluded.done_count,
    failed_count = known.failed_count + excluded.failed_count,
    lost_count = known.lost_count + excluded.lost_count
"""

# By `workspace_path_unique`, the contents by their primary key.
FIND_INPUTS = """
SELECT file.path, {blob}
FROM jobs_workspacefile AS file JOIN jobs_blob AS blob ON blob.sha256 = file.blob_id
WHERE file.workspace_id = %(workspace_id)s AND file.path = ANY(%(paths)s)
ORDER BY file.path
"""

# By hand: the ORM knows no such lock. Many may hold it, and who deletes the row waits or passes
# over it. By the primary key.
HOLD_CONTENT = "SELECT true FROM jobs_blob WHERE sha256 = %(sha256)s FOR KEY SHARE"

# By hand: the ORM deletes and adds in one statement no more than it counts on conflicts. The oldest
# entries, by `output_bytes_to_add`; the sums of their clusters by `output_bytes_one_sum`.
FOLD_OUTPUT_BYTES = """
WITH taken AS (
    DELETE FROM jobs_outputbytes WHERE id IN (
        SELECT id FROM jobs_outputbytes WHERE NOT is_sum ORDER BY id LIMIT %(most)s
        FOR UPDATE SKIP LOCKED)
    RETURNING cluster_id, size_bytes
), added AS (
    INSERT INTO jobs_outputbytes AS kept (cluster_id, size_bytes, is_sum)
    SELECT cluster_id, sum(size_bytes), true FROM taken GROUP BY cluster_id ORDER BY cluster_id
    ON CONFLICT (cluster_id) WHERE is_sum
    DO UPDATE SET size_bytes = kept.size_bytes + excluded.size_bytes
)
SELECT count(*) FROM taken
"""

# All entries of one user and group become one, which the ORM cannot do in a statement. Entries that
# are added meanwhile stay. The whole table is read: it is as long as there are users and groups,
# and what was added since the last time.
FOLD_STORED_BYTES = """
WITH gone AS (
    DELETE FROM jobs_storedbytes WHERE (owner_id, owner_group) IN (
        SELECT owner_id, owner_group FROM jobs_storedbytes
        GROUP BY owner_id, owner_group HAVING count(*) > 1 OR sum(size_bytes) = 0
    )
    RETURNING owner_id, owner_group, size_bytes
)
INSERT INTO jobs_storedbytes (owner_id, owner_group, size_bytes)
SELECT owner_id, owner_group, sum(size_bytes) FROM gone
GROUP BY owner_id, owner_group HAVING sum(size_bytes) <> 0
"""

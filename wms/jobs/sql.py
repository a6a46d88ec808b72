"""Statements of jobs: storing thousands, the limits of each claim, and reports of pilots."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from wms.core.database.statements import one_line

# By hand: the ORM knows no sequences. Ids are known before the rows are sent, so that nobody
# waits for these. No table is read.
RESERVE_JOB_IDS = """
SELECT nextval(pg_get_serial_sequence('jobs_job', 'id')) FROM generate_series(1, %s)
"""

# By hand because the ORM writes a parameter for each column of each row. The rows travel as one
# JSON value, which is several times as fast; the needs, which many jobs have in common, apart
# from them. No table is read.
INSERT_JOBS = """
INSERT INTO jobs_job
    (id, name, owner_id, workspace_id, state, state_reason, executable, arguments, environment,
     input_files, output_files, stdout_name, stderr_name, needs, priority, attributes,
     wall_limit_s, max_attempts, attempt_number, topic, topic_key, cluster_id, process,
     max_retries, periodic, request_disk_mb, directory, avoided_hosts)
SELECT job.id, job.name, %(owner)s, %(workspace)s, %(state)s, '', job.executable, job.arguments,
     job.environment, job.input_files, job.output_files, job.stdout_name, job.stderr_name,
     of_job.needs, job.priority, job.attributes, job.wall_limit_s, job.max_attempts, 0,
     %(topic)s, %(topic_key)s, job.cluster_id, job.process, job.max_retries, job.periodic,
     job.request_disk_mb, job.directory, coalesce(job.avoided_hosts, '{}')
FROM jsonb_to_recordset(%(jobs)s::jsonb) AS job(
    id bigint, name text, executable text, arguments text[], environment jsonb,
    input_files varchar[], output_files varchar[], stdout_name text, stderr_name text,
    needs_number integer, priority smallint, attributes jsonb, wall_limit_s integer,
    max_attempts smallint, cluster_id bigint, process integer, max_retries smallint,
    periodic jsonb, request_disk_mb integer, directory text, avoided_hosts varchar[])
JOIN jsonb_to_recordset(%(needs)s::jsonb) AS of_job(number integer, needs jsonb)
    ON of_job.number = job.needs_number
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


# Statements of each job in its pilot. By hand, because to write them takes the ORM longer than the
# answer takes PostgreSQL: they stay prepared (`wms.jobs.prepared_statements`). The job is found by its
# primary key.
FIND_JOB = "SELECT {job} FROM jobs_job AS job WHERE job.id = %(job_id)s"

# The job by its primary key, the attempt by `attempt_number_unique`. What the attempt's row says is
# read after the lock, by the next one.
LOCK_JOB_OF_ATTEMPT = """
SELECT {job} FROM jobs_job AS job JOIN jobs_attempt AS attempt ON attempt.job_id = job.id
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

# By the index of the attempts' pilots.
FIND_ATTEMPTS_OF_CLAIM = """
SELECT {attempt} FROM jobs_attempt AS attempt
WHERE attempt.pilot_id = %(pilot_id)s
    AND (attempt.outcome = '' OR attempt.claim_key = %(claim_key)s)
"""

# By the primary key. A start that was not reported was so long ago as the payload took.
END_ATTEMPT = """
UPDATE jobs_attempt SET started_at = coalesce(started_at, %(began_at)s),
    exit_code = %(exit_code)s, signal = %(signal)s, wall_s = %(wall_s)s, cpu_s = %(cpu_s)s,
    max_rss_mb = %(max_rss_mb)s, stopped_by = %(stopped_by)s, usage = %(usage)s,
    outcome = %(outcome)s, reason = %(reason)s, ended_at = %(ended_at)s
WHERE id = %(attempt_id)s
RETURNING true
"""

# By `workspace_path_unique`, the contents by their primary key.
FIND_INPUTS = """
SELECT file.path, {blob}
FROM jobs_workspacefile AS file JOIN jobs_blob AS blob ON blob.sha256 = file.blob_id
WHERE file.workspace_id = %(workspace_id)s AND file.path = ANY(%(paths)s)
ORDER BY file.path
"""

"""SQL of jobs: bulk insertion, and running limits of claims."""

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

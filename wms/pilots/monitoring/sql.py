"""SQL of the search for suspected worker nodes: how payloads ended on each node lately."""

from __future__ import annotations

# Payloads that failed, or could not be run there. Who was stopped by others says nothing of a
# node, and neither does a pilot that was lost: that is the batch system's affair.
_FAILED = "outcome IN ('failed', 'not_run')"

# A range of the primary key, so that no further index makes each end of an attempt dearer.
_LATELY = """
    a.id > (SELECT max(id) FROM jobs_attempt) - %(latest)s
    AND a.host <> '' AND a.stopped_by NOT IN ('server', 'preemption')
"""

# Most times there is nothing to look at. By hand, as it shares its conditions with the next one;
# both find the attempts by their primary key.
FIND_TROUBLED_SITES = f"""
SELECT DISTINCT site_name FROM (
    SELECT a.site_name FROM jobs_attempt AS a
    WHERE {_LATELY} AND a.{_FAILED} AND a.ended_at > %(since)s
    GROUP BY a.site_name, a.host HAVING count(DISTINCT a.job_id) >= %(least)s
) AS troubled
"""

# By hand, as it shares its conditions with the one above. A DAG node that is tried again has
# another job of the same name. What ran on a node before a suspicion of it ended is forgiven. The
# jobs and descriptions are found by their primary keys, the suspicions by `suspected_by_host`.
READ_TRIALS = f"""
SELECT a.site_name, a.host, j.owner_id, j.topic, j.topic_key,
    coalesce(j.own ->> 'executable', d.content ->> 'executable', ''), j.name, j.process,
    CASE WHEN j.topic = '' THEN j.id END,
    bool_or(a.{_FAILED}),
    (array_agg(a.job_id ORDER BY a.ended_at DESC) FILTER (WHERE a.{_FAILED}))[1],
    max(a.ended_at) FILTER (WHERE a.{_FAILED})
FROM jobs_attempt AS a JOIN jobs_job AS j ON j.id = a.job_id
LEFT JOIN jobs_jobdescription AS d ON d.id = j.description_id
WHERE {_LATELY} AND a.site_name = ANY(%(sites)s)
    AND (a.outcome IN ('done', 'failed', 'not_run') AND a.ended_at > %(since)s
        OR a.outcome = '' AND a.started_at < %(survived)s)
    AND NOT EXISTS (
        SELECT FROM pilots_suspectednode AS old JOIN sites_site AS s ON s.id = old.site_id
        WHERE s.name = a.site_name AND old.host = a.host AND old.ended_at > a.matched_at)
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
"""

"""What became of payloads on the worker nodes of a site lately."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from matching.suspected_nodes import Trial

#: What ended so long ago says nothing of a node any more.
WINDOW = timedelta(hours=1)
#: A payload that has run for so long has not failed at once: it counts as well as those that are
#: done, so that a node is found out before long payloads of the others end.
SURVIVAL = timedelta(seconds=60)
#: So many of the latest attempts are looked at: a range of the primary key, so that no index makes
#: each end of an attempt dearer.
LATEST = 20_000
#: Of the jobs that failed on a node, so many are told.
_TOLD = 20

# Payloads that failed, or could not be run there. Who was stopped by others says nothing of a node,
# and neither does a pilot that was lost: that is the batch system's affair.
_FAILED = "outcome IN ('failed', 'not_run')"
_LATELY = """
    a.id > (SELECT max(id) FROM jobs_attempt) - %(latest)s
    AND a.host <> '' AND a.stopped_by NOT IN ('server', 'preemption')
"""

# Most times there is nothing to look at.
_TROUBLED = f"""
SELECT DISTINCT site_name FROM (
    SELECT a.site_name FROM jobs_attempt AS a
    WHERE {_LATELY} AND a.{_FAILED} AND a.ended_at > %(since)s
    GROUP BY a.site_name, a.host HAVING count(DISTINCT a.job_id) >= %(least)s
) AS troubled
"""

# A DAG node that is tried again has another job of the same name. What ran on a node before a
# suspicion of it ended is forgiven.
_TRIALS = f"""
SELECT a.site_name, a.host, j.owner_id, j.topic, j.topic_key, j.executable, j.name, j.process,
    CASE WHEN j.topic = '' THEN j.id END,
    bool_or(a.{_FAILED}),
    (array_agg(a.job_id ORDER BY a.ended_at DESC) FILTER (WHERE a.{_FAILED}))[1],
    max(a.ended_at) FILTER (WHERE a.{_FAILED})
FROM jobs_attempt AS a JOIN jobs_job AS j ON j.id = a.job_id
WHERE {_LATELY} AND a.site_name = ANY(%(sites)s)
    AND (a.outcome IN ('done', 'failed', 'not_run') AND a.ended_at > %(since)s
        OR a.outcome = '' AND a.started_at < %(survived)s)
    AND NOT EXISTS (
        SELECT FROM pilots_suspectednode AS old JOIN sites_site AS s ON s.id = old.site_id
        WHERE s.name = a.site_name AND old.host = a.host AND old.ended_at > a.matched_at)
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
"""


@dataclass(slots=True)
class SiteTrials:
    """The trials at one site, and by node the jobs that failed there, the latest first."""

    trials: list[Trial]
    failed_jobs: dict[str, list[int]]


def troubled_sites(now: datetime, *, least_failed: int) -> list[str]:
    """The sites that have a node on which so many jobs failed lately."""
    found = _rows(_TROUBLED, now, least=least_failed)
    return [site for (site,) in found]


def trials_at(sites: Collection[str], now: datetime) -> Mapping[str, SiteTrials]:
    """What became of payloads at these sites lately. One query.

    Alike are the payloads of one DAG that run the same executable.
    """
    found: dict[str, SiteTrials] = defaultdict(lambda: SiteTrials([], {}))
    failed: dict[tuple[str, str], list[tuple[datetime, int]]] = defaultdict(list)
    rows = _rows(_TRIALS, now, sites=list(sites))
    for site, host, owner, topic, key, executable, *payload, is_bad, job_id, ended_at in rows:
        batch = (owner, topic, key, executable)
        found[site].trials.append(Trial(host, batch, tuple(payload), is_bad))
        if is_bad:
            failed[site, host].append((ended_at, job_id))
    for (site, host), jobs in failed.items():
        latest = sorted(jobs, reverse=True)[:_TOLD]
        found[site].failed_jobs[host] = [job_id for _, job_id in latest]
    return found


def _rows(statement: str, now: datetime, **parameters: Any) -> list[tuple[Any, ...]]:
    times = {"since": now - WINDOW, "survived": now - SURVIVAL}
    with connection.cursor() as cursor:
        cursor.execute(statement, {"latest": LATEST, **times, **parameters})
        return list(cursor.fetchall())

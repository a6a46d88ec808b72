"""Results of payloads by worker node of a site in the last hour, to find nodes that fail jobs.

Read-only: good and bad ends with the jobs that failed. Also the sites that have a node with many
failed jobs. `wms.pilots.monitoring.suspects` judges them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from matching.task_queues.suspected_nodes import Trial
from wms.pilots.monitoring.sql import FIND_TROUBLED_SITES, READ_TRIALS

#: Age of ended payloads up to which they count for a node.
WINDOW = timedelta(hours=1)
#: A payload that has run for so long has not failed at once: it counts as well as those that are
#: done, so that a node is found out before long payloads of the others end.
SURVIVAL = timedelta(seconds=60)
#: Number of the latest attempts that are looked at: a range of the primary key, so that no index
#: makes each end of an attempt dearer.
LATEST = 20_000
#: Number of failed jobs that are named for a node.
_TOLD = 20


@dataclass(slots=True)
class SiteTrials:
    """Trials at one site, and by node the jobs that failed there, the latest first."""

    trials: list[Trial]
    failed_jobs: dict[str, list[int]]


def troubled_sites(now: datetime, *, least_failed: int) -> list[str]:
    """Sites that have a node on which so many jobs failed lately."""
    rows = _rows(FIND_TROUBLED_SITES, now, least=least_failed)
    return [site for (site,) in rows]


def trials_at(sites: Collection[str], now: datetime) -> Mapping[str, SiteTrials]:
    """Trials at these sites in the last hour. One query.

    Alike are the payloads of one DAG that run the same executable.
    """
    trials: dict[str, SiteTrials] = defaultdict(lambda: SiteTrials([], {}))
    failed: dict[tuple[str, str], list[tuple[datetime, int]]] = defaultdict(list)
    rows = _rows(READ_TRIALS, now, sites=list(sites))
    for site, host, owner, topic, key, executable, *payload, is_bad, job_id, ended_at in rows:
        batch = (owner, topic, key, executable)
        trials[site].trials.append(Trial(host, batch, tuple(payload), is_bad))
        if is_bad:
            failed[site, host].append((ended_at, job_id))
    for (site, host), jobs in failed.items():
        latest = sorted(jobs, reverse=True)[:_TOLD]
        trials[site].failed_jobs[host] = [job_id for _, job_id in latest]
    return trials


def _rows(statement: str, now: datetime, **parameters: Any) -> list[tuple[Any, ...]]:
    times = {"since": now - WINDOW, "survived": now - SURVIVAL}
    with connection.cursor() as cursor:
        cursor.execute(statement, {"latest": LATEST, **times, **parameters})
        return list(cursor.fetchall())

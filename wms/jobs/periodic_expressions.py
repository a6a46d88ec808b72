"""Control loop that evaluates periodic expressions and holds, releases or removes jobs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from wms.core.actors import Actor
from wms.jobs import operations
from wms.jobs.expressions import JobAd
from wms.jobs.models import Job
from wms.jobs.selectors import latest_attempts
from wms.jobs.states import TERMINAL, JobCause, JobState

_ACTOR = Actor.system("periodic-expressions")
_CAUSE = JobCause.EXPRESSION
#: Time limit of a cycle; the next one goes on behind the last job of this one.
LIMIT_S = 15.0
_BATCH = 1000
_LONGEST_TOLD = 200
_COLUMNS = (
    "pk", "state", "state_since", "state_reason", "created_at", "attributes", "needs", "periodic",
    "cluster_id", "process", "executable", "attempt_number", "payload_failures", "hold_count",
    "priority", "max_retries", "request_disk_mb",
)  # fmt: skip


def run_cycle(now: datetime, *, after: int = 0) -> dict[str, Any]:
    """Evaluate the expressions of jobs behind `after`, by id, as many as there is time for.

    The report tells behind which job the next cycle goes on; 0 is from the first again.
    """
    report: dict[str, Any] = {"looked_at": 0, "held": 0, "released": 0, "removed": 0}
    began_s = time.monotonic()
    while True:
        jobs = _next_jobs(after)
        report["looked_at"] += len(jobs)
        for (action, reason), ids in _jobs_by_action(jobs, now).items():
            _carry_out(action, ids, reason, report)
        after = jobs[-1].pk if len(jobs) == _BATCH else 0
        if not after or time.monotonic() - began_s > LIMIT_S:
            return {**report, "after": after}


def _next_jobs(after: int) -> list[Job]:
    jobs = Job.objects.filter(pk__gt=after, periodic__isnull=False).exclude(state__in=TERMINAL)
    return list(jobs.order_by("pk").only(*_COLUMNS)[:_BATCH])


def _jobs_by_action(jobs: Sequence[Job], now: datetime) -> Mapping[tuple[str, str], list[int]]:
    """The ids of the jobs to be acted on, by action and reason."""
    attempts = latest_attempts([job.pk for job in jobs])
    decided: dict[tuple[str, str], list[int]] = defaultdict(list)
    for job in jobs:
        action = _action(JobAd(job, attempts.get(job.pk), now), is_held=job.state == JobState.HELD)
        if action:
            expression = (job.periodic or {})[action][:_LONGEST_TOLD]
            decided[action, f"periodic_{action} is true: {expression}"].append(job.pk)
    return decided


def _action(ad: JobAd, *, is_held: bool) -> str:
    """Action of the first expression that is true, in HTCondor's order; or an empty string."""
    first = "release" if is_held else "hold"
    return next((each for each in (first, "remove") if ad.is_true(each)), "")


def _carry_out(action: str, ids: Sequence[int], reason: str, report: dict[str, Any]) -> None:
    """Act on jobs; those that changed since they were read are passed over."""
    if action == "hold":
        applied = operations.hold_jobs(ids, actor=_ACTOR, reason=reason, cause=_CAUSE)
        report["held"] += len(applied.changed)
    elif action == "release":
        applied = operations.release_jobs(ids, actor=_ACTOR, reason=reason, cause=_CAUSE)
        report["released"] += len(applied.changed)
    else:
        applied = operations.kill_jobs(ids, actor=_ACTOR, reason=reason, cause=_CAUSE)
        report["removed"] += len(applied.changed)

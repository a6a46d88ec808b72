"""Control loop of `periodic_hold`, `periodic_release` and `periodic_remove` of jobs.

Evaluates these expressions and holds, releases or removes the jobs. Also holds jobs that have been
with a pilot for longer than their `allowed_job_duration`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from wms.core.actors import Actor
from wms.jobs import operations
from wms.jobs.attempts.hold_codes import hold_facts, note_subcodes
from wms.jobs.directives import Directives
from wms.jobs.expressions import JobAd
from wms.jobs.models import Attempt, Job
from wms.jobs.models.jobs import DESCRIBED_COLUMNS
from wms.jobs.selectors import latest_attempts
from wms.jobs.states import TERMINAL, WITH_PILOT, JobCause, JobState

_ACTOR = Actor.system("periodic-expressions")
#: Time limit of a cycle; the next one goes on behind the last job of this one.
LIMIT_S = 15.0
_BATCH = 1000
_LONGEST_TOLD = 200
_COLUMNS = (
    "state", "state_since", "state_reason", "state_cause", "created_at", "cluster_id", "process",
    "attempt_number", "payload_failures", "hold_count", "priority", *DESCRIBED_COLUMNS,
)  # fmt: skip
#: Jobs that are held with something larger are released with that alone.
_HELD_WITH_OTHERS = frozenset({JobCause.DAG_HELD, JobCause.CLUSTER_HELD})
#: A job that was held so often goes round in a circle, and its expression releases it no more.
MOST_HOLDS = 10_000


def run_cycle(now: datetime, *, after: int = 0) -> dict[str, Any]:
    """Evaluate the expressions of jobs behind `after`, by id, as many as there is time for.

    The report tells behind which job the next cycle goes on; 0 is from the first again.
    """
    report: dict[str, Any] = {"looked_at": 0, "held": 0, "released": 0, "removed": 0}
    began_s = time.monotonic()
    while True:
        jobs = _next_jobs(after)
        report["looked_at"] += len(jobs)
        for decision, subcodes in _decisions(jobs, now).items():
            _carry_out(decision, subcodes, report)
        after = jobs[-1].pk if len(jobs) == _BATCH else 0
        if not after or time.monotonic() - began_s > LIMIT_S:
            return {**report, "after": after}


def _next_jobs(after: int) -> list[Job]:
    jobs = Job.objects.filter(pk__gt=after, has_periodic=True).exclude(state__in=TERMINAL)
    return list(jobs.select_related("description").order_by("pk").only(*_COLUMNS)[:_BATCH])


@dataclass(frozen=True, slots=True)
class _Decision:
    """What is to be done with a job, and why."""

    action: str
    reason: str
    cause: JobCause = JobCause.EXPRESSION


def _decisions(jobs: Sequence[Job], now: datetime) -> Mapping[_Decision, dict[int, int]]:
    """The jobs to be acted on by what is decided, each with the subcode of its hold."""
    attempts = latest_attempts([job.pk for job in jobs])
    decided: dict[_Decision, dict[int, int]] = defaultdict(dict)
    for job in jobs:
        attempt = attempts.get(job.pk)
        ad = JobAd(job, attempt, now)
        if decision := _overdue(job, attempt, now):
            decided[decision][job.pk] = 0
        elif action := _action(job, ad):
            expression = (job.periodic or {})[action][:_LONGEST_TOLD]
            reason = ad.text(f"{action}_reason") or f"periodic_{action} is true: {expression}"
            decided[_Decision(action, reason)][job.pk] = ad.whole_number(f"{action}_subcode")
    return decided


def _overdue(job: Job, attempt: Attempt | None, now: datetime) -> _Decision | None:
    """The hold of a job that has been with its pilot for longer than it may; None for others."""
    limit_s = Directives.of(job.directives).duration_limit_s
    if not limit_s or attempt is None or job.state not in WITH_PILOT:
        return None
    if (now - attempt.matched_at).total_seconds() < limit_s:
        return None
    reason = f"it was with its pilot for longer than the {limit_s} s that it may"
    return _Decision("hold", reason, JobCause.JOB_DURATION)


def _action(job: Job, ad: JobAd) -> str:
    """Action of the first expression that is true, in HTCondor's order; or an empty string."""
    if job.state != JobState.HELD:
        possible = ["hold", "remove"]
    elif job.state_cause in _HELD_WITH_OTHERS or job.hold_count >= MOST_HOLDS:
        possible = ["remove"]
    else:
        possible = ["release", "remove"]
    return next((each for each in possible if ad.is_true(each)), "")


def _carry_out(decision: _Decision, subcodes: Mapping[int, int], report: dict[str, Any]) -> None:
    """Act on jobs; those that changed since they were read are passed over."""
    ids, reason, cause = list(subcodes), decision.reason, decision.cause
    if decision.action == "hold":
        with transaction.atomic():
            note_subcodes(subcodes)
            facts = {pk: hold_facts(decision.cause, code) for pk, code in subcodes.items()}
            applied = operations.hold_jobs(
                ids, actor=_ACTOR, reason=reason, cause=cause, facts=facts
            )
        report["held"] += len(applied.changed)
    elif decision.action == "release":
        applied = operations.release_jobs(ids, actor=_ACTOR, reason=reason, cause=cause)
        report["released"] += len(applied.changed)
    else:
        applied = operations.kill_jobs(ids, actor=_ACTOR, reason=reason, cause=cause)
        report["removed"] += len(applied.changed)

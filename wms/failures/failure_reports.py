"""Reports of failures, read from the events of jobs, nodes and pilots, with facts and category.

The facts are message, time, site, host, owner and DAG; the category is the likely one. Left out are
holds by people, and failures that the event of another object tells. Also the inboxes in which
failures are announced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wms.dags.engine.transitions import FAILURE_TOPIC as NODE_TOPIC
from wms.dags.engine.transitions import FAILURES as NODE_FAILURES
from wms.dags.models import NodeEvent
from wms.dags.reading.dag_jobs import JOB_TOPIC_COLUMNS, dag_id_of_topic
from wms.dags.states import NodeCause, NodeKind, NodeState
from wms.failures.models import Category, Kind
from wms.jobs.lifecycle import FAILURE_TOPIC as FAILED_JOBS
from wms.jobs.models import Attempt, JobEvent
from wms.jobs.states import JobCause
from wms.pilots.lifecycle import FAILURE_TOPIC as PILOT_TOPIC
from wms.pilots.models import PilotEvent
from wms.pilots.monitoring.suspects import Suspicions

#: The inboxes of failures, by what failed.
KINDS: Mapping[str, Kind] = {
    FAILED_JOBS: Kind.JOB,
    NODE_TOPIC: Kind.NODE,
    PILOT_TOPIC: Kind.PILOT,
}
_JOB_COLUMNS = (
    "pk", "job_id", "event", "actor", "reason", "cause", "created_at", "job__owner_id",
    "job__owner__username", *JOB_TOPIC_COLUMNS,
)  # fmt: skip
_NODE_COLUMNS = (
    "pk", "node_id", "from_state", "reason", "cause", "created_at", "node__kind", "dag_id",
    "dag__owner_id", "dag__owner__username", "dag__site__name",
)  # fmt: skip
_PILOT_COLUMNS = (
    "pk", "pilot_id", "event", "reason", "created_at", "pilot__owner_id", "pilot__owner__username",
    "pilot__queue__site__name", "pilot__node__hostname",
)  # fmt: skip
_OUTCOME = Attempt.Outcome
_OF_DATA = frozenset(
    {JobCause.INPUTS, JobCause.OUTPUTS, JobCause.IMAGE, JobCause.FETCH, JobCause.SEND}
)


@dataclass(frozen=True, slots=True)
class FailureReport:
    """One failure with the facts of its event and of the failed object.

    `host` and `owner` are names that its message may contain.
    """

    kind: Kind
    event_id: int
    subject_id: int
    message: str
    at: datetime
    site: str = ""
    host: str = ""
    owner: str = ""
    owner_id: int | None = None
    dag_id: int | None = None
    likely_category: Category = Category.UNKNOWN


def read_events(kind: Kind, event_ids: Collection[int]) -> list[FailureReport]:
    """Reports of the failures among these events, in at most three queries.

    Left out are holds by people, ends of nodes that follow from the end of a
    job, which is told by the job, and jobs that run again because their pilot failed, which is told
    by the pilot.
    """
    return _READERS[kind](event_ids)


def _read_jobs(event_ids: Collection[int]) -> list[FailureReport]:
    rows = list(JobEvent.objects.filter(pk__in=event_ids).values_list(*_JOB_COLUMNS))
    attempts = _attempts_of({row[1] for row in rows})
    suspicions = Suspicions({each.host for of_job in attempts.values() for each in of_job})
    reports = []
    for pk, job_id, event, actor, reason, cause, at, owner_id, owner, topic, key in rows:
        # Names of people have no colon.
        if event == "hold" and ":" not in actor:
            continue
        # One that fails with its pilot is told anyway.
        if event == "reschedule" and cause == JobCause.PILOT_FAILED:
            continue
        tried = _attempt_at(attempts[job_id], at)
        # Beside what the payload does wrong by itself: a group of its own, for the site.
        is_of_node = tried is not None and suspicions.has(tried.site_name, tried.host, at)
        reports.append(
            FailureReport(
                kind=Kind.JOB,
                event_id=pk,
                subject_id=job_id,
                message=f"on a suspected worker node: {reason}" if is_of_node else reason,
                at=at,
                site=tried.site_name if tried else "",
                host=tried.host if tried else "",
                owner=owner,
                owner_id=owner_id,
                dag_id=dag_id_of_topic(topic, key),
                likely_category=Category.SITE
                if is_of_node
                else _likely_category_of_job(cause, tried),
            )
        )
    return reports


def _attempts_of(job_ids: Collection[int]) -> dict[int, list[Attempt]]:
    found: dict[int, list[Attempt]] = defaultdict(list)
    columns = ("job_id", "pilot_id", "site_name", "host", "matched_at", "outcome", "stopped_by")
    attempts = Attempt.objects.filter(job_id__in=job_ids).only(*columns)
    for attempt in attempts.order_by("job_id", "-number"):
        found[attempt.job_id].append(attempt)
    return found


def _attempt_at(attempts: Iterable[Attempt], at: datetime) -> Attempt | None:
    """The attempt that was the current one at that time."""
    return next((attempt for attempt in attempts if attempt.matched_at <= at), None)


def _likely_category_of_job(cause: str, tried: Attempt | None) -> Category:
    if cause in _OF_DATA:
        return Category.DATA
    if tried is None:
        return Category.UNKNOWN
    if tried.stopped_by == Attempt.StoppedBy.SERVER:
        return Category.PERSON
    if tried.stopped_by == Attempt.StoppedBy.PILOT_TIME:
        return Category.PAYLOAD
    if tried.outcome in {_OUTCOME.LOST, _OUTCOME.NOT_RUN}:
        return Category.SITE
    return Category.PAYLOAD if tried.outcome == _OUTCOME.FAILED else Category.UNKNOWN


def _read_nodes(event_ids: Collection[int]) -> list[FailureReport]:
    # Only failures have an index of their ids.
    events = NodeEvent.objects.filter(pk__in=event_ids, event__in=NODE_FAILURES)
    rows = events.values_list(*_NODE_COLUMNS)
    return [
        FailureReport(
            kind=Kind.NODE,
            event_id=pk,
            subject_id=node_id,
            message=reason,
            at=at,
            site=site or "",
            owner=owner,
            owner_id=owner_id,
            dag_id=dag_id,
            likely_category=_likely_category_of_node(cause, kind),
        )
        for pk, node_id, was, reason, cause, at, kind, dag_id, owner_id, owner, site in rows
        # Of what runs for a node the jobs and the inner nodes tell themselves.
        if was != NodeState.SUBMITTED or kind == NodeKind.DATA or cause == NodeCause.GROWTH
        # That somebody closes a gate is no fault of anything.
        if kind != NodeKind.GATE
    ]


def _likely_category_of_node(cause: str, kind: str) -> Category:
    if kind == NodeKind.DATA:
        return Category.DATA
    return Category.PAYLOAD if cause in (NodeCause.SCRIPT, NodeCause.GROWTH) else Category.UNKNOWN


def _read_pilots(event_ids: Collection[int]) -> list[FailureReport]:
    rows = PilotEvent.objects.filter(pk__in=event_ids).values_list(*_PILOT_COLUMNS)
    return [
        FailureReport(
            kind=Kind.PILOT,
            event_id=pk,
            subject_id=pilot_id,
            message=reason,
            at=at,
            site=site,
            host=_text(host),
            owner=owner or "",
            owner_id=owner_id,
            likely_category=Category.SITE,
        )
        for pk, pilot_id, _, reason, at, owner_id, owner, site, host in rows
    ]


def _text(value: Any) -> str:
    """A pilot's value as text: pilots may report anything of their nodes."""
    return value if isinstance(value, str) else ""


_READERS: Mapping[Kind, Callable[[Collection[int]], list[FailureReport]]] = {
    Kind.JOB: _read_jobs,
    Kind.NODE: _read_nodes,
    Kind.PILOT: _read_pilots,
}

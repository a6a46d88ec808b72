"""States of all nodes in a DAG's drawing, one byte each, with counts, and changes since a version.

A submitted node shows whether its job runs, stalls or is held. Node transitions happen under the
lock of the DAG's row. So within a DAG the ids of node events are in the order of commits, and the
last event id is a version. Jobs are not under that lock: their changes are sent again for a minute,
which is harmless since states are sent, not transitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

from wms.dags.models import Dag, Node, NodeEvent
from wms.dags.reading.dag_jobs import jobs_of
from wms.dags.reading.drawing import Drawing
from wms.dags.reading.selectors import NodeCounts
from wms.dags.reading.sql import READ_VERSION, read_node_states
from wms.dags.states import COUNTED_KINDS, NodeState
from wms.jobs.models import Job
from wms.jobs.selectors import of_clusters
from wms.jobs.states import QUEUED, WITH_PILOT, JobState

#: States of jobs that are drawn instead of `submitted`; the first of several jobs counts.
DRAWN_JOB_STATES = (JobState.RUNNING.value, JobState.STALLED.value, JobState.HELD.value)
#: States that are drawn; the byte of a node is the index in this tuple.
DRAWN = (*NodeState.values, *DRAWN_JOB_STATES)
#: Limit of the duration of a transaction that changes a job, so that no change is missed.
_OVERLAP = timedelta(minutes=1)
#: Limit of changes; for more, all states are sent.
MAX_CHANGES = 20_000

_LETTERS = "".join(chr(ord("a") + place) for place in range(len(DRAWN)))
_TO_BYTES = {
    ord(letter): place
    for letters in (_LETTERS, _LETTERS.upper())
    for place, letter in enumerate(letters)
}
_READ_STATES = read_node_states(dict(zip(NodeState.values, _LETTERS, strict=False)))
_WAITING = bytes([DRAWN.index(NodeState.WAITING.value)])
_SUBMITTED = DRAWN.index(NodeState.SUBMITTED.value)


@dataclass(frozen=True, slots=True)
class Version:
    """Version of the states of a DAG: the last event, and the time."""

    event_id: int
    seen_at: datetime

    def __str__(self) -> str:
        return f"{self.event_id}-{int(self.seen_at.timestamp())}"


def read_version(text: str) -> Version | None:
    """Version from its text; None for another text."""
    event_id, _, seconds = text.partition("-")
    if not (_is_number(event_id) and _is_number(seconds)):
        return None
    return Version(int(event_id), datetime.fromtimestamp(int(seconds), UTC))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 11


@dataclass(frozen=True, slots=True)
class States:
    """States of the nodes of a drawing as indices in `DRAWN`.

    `counts` are by the nodes' own states, without those of jobs.
    """

    version: Version
    codes: bytes
    counts: NodeCounts


@dataclass(frozen=True, slots=True)
class OwnStates:
    """States of all nodes without those of their jobs; unchanged until the next node event."""

    codes: bytes
    counts: NodeCounts


@dataclass(frozen=True, slots=True)
class StateChanges:
    """Changed states by node number in the drawing; None for too many."""

    version: Version
    codes: Mapping[int, int] | None


def version_of(dag: Dag) -> Version:
    """Version of the states of a DAG now."""
    with connection.cursor() as cursor:
        cursor.execute(READ_VERSION, [dag.pk])
        return Version(*cursor.fetchone())


def with_version(dags: QuerySet[Dag]) -> QuerySet[Dag]:
    """DAGs annotated for `version_with`, in the same query."""
    latest = NodeEvent.objects.filter(dag=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    return dags.annotate(latest_event=Coalesce(Subquery(latest), 0), read_at=Now())


def version_with(dag: Any) -> Version:
    """Version of the states of a DAG when it was read by `with_version`."""
    return Version(dag.latest_event, dag.read_at)


def states_of_nodes(dag: Dag, drawing: Drawing) -> States:
    """States of all nodes. Changes during the query are in the next `changes_since`."""
    version = version_of(dag)
    return with_jobs(dag, drawing, version, own_states(dag))


def own_states(dag: Dag) -> OwnStates:
    """States of all nodes from their rows; one query."""
    with connection.cursor() as cursor:
        cursor.execute(_READ_STATES, [list(COUNTED_KINDS), dag.pk])
        letters = cursor.fetchone()[0] or ""
    counted, every = Counter[str](), Counter[str]()
    for state, letter in zip(NodeState.values, _LETTERS, strict=False):
        counted[state] = letters.count(letter)
        every[state] = counted[state] + letters.count(letter.upper())
    codes = bytes(letters.translate(_TO_BYTES), "latin-1")
    # Without states that no node has.
    return OwnStates(codes, NodeCounts(+counted, +every))


def with_jobs(dag: Dag, drawing: Drawing, version: Version, own: OwnStates) -> States:
    """States with those of jobs for submitted nodes; a query if there are such nodes."""
    # A DAG may have grown between the queries: its new nodes wait.
    codes = bytearray(own.codes.ljust(drawing.node_count, _WAITING))
    if _SUBMITTED in codes:
        shown_jobs = jobs_of(dag.pk).filter(state__in=DRAWN_JOB_STATES)
        for node_id, code in _codes_by_node(shown_jobs).items():
            index = drawing.index_of(node_id)
            if index is not None and codes[index] == _SUBMITTED:
                codes[index] = code
    return States(version, bytes(codes), own.counts)


def changes_since(dag: Dag, drawing: Drawing, known: Version) -> StateChanges:
    """States that differ from those of a version, and perhaps some that do not."""
    version = version_of(dag)
    events = NodeEvent.objects.filter(dag=dag, pk__gt=known.event_id).order_by()
    moved = set(events.values_list("node_id", flat=True).distinct()[: MAX_CHANGES + 1])
    alive = jobs_of(dag.pk).filter(state__in=[*QUEUED, *WITH_PILOT])
    first_jobs = _first_jobs(
        alive.filter(state_since__gte=known.seen_at - _OVERLAP)[: MAX_CHANGES + 1]
    )
    if len(moved) > MAX_CHANGES or len(first_jobs) > MAX_CHANGES:
        return StateChanges(version, None)
    rows = Node.objects.filter(Q(pk__in=moved) | Q(job_id__in=first_jobs), dag=dag)
    states = {pk: (state, job) for pk, state, job in rows.values_list("pk", "state", "job_id")}
    under_way = {
        job for state, job in states.values() if job and state == NodeState.SUBMITTED.value
    }
    shown_jobs = jobs_of(dag.pk).filter(state__in=DRAWN_JOB_STATES)
    job_codes = _codes_by_node(shown_jobs.filter(of_clusters(under_way)))
    codes = {}
    for pk, (state, _) in states.items():
        index = drawing.index_of(pk)
        if index is not None:
            code = DRAWN.index(state)
            codes[index] = job_codes.get(pk, code) if code == _SUBMITTED else code
    return StateChanges(version, codes)


def _first_jobs(jobs: QuerySet[Job]) -> set[int]:
    """First jobs of the clusters of these jobs."""
    return {cluster or pk for pk, cluster in jobs.values_list("pk", "cluster_id")}


def _codes_by_node(shown_jobs: QuerySet[Job]) -> dict[int, int]:
    """State codes by node id, from the states of these jobs; one query."""
    # The jobs of a cluster stand for one node, which knows the first of them.
    node = Node.objects.filter(job_id=OuterRef("first")).values("pk")[:1]
    rows = shown_jobs.annotate(first=Coalesce("cluster_id", "pk"), node=Subquery(node))
    job_codes: dict[int, int] = {}
    for node_id, state in rows.values_list("node", "state"):
        code = DRAWN.index(state)
        job_codes[node_id] = min(code, job_codes.get(node_id, code))
    return job_codes

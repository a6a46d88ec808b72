"""The states of all nodes of a DAG in few bytes, and what of them has changed since.

Whoever moves nodes holds the lock of the DAG's row until the commit. So within one DAG the ids of
node events are in the order of the commits, and whoever has seen one of them has seen all before
it. Jobs are not under that lock: what changed of them is told again for a while, which does no harm
because it is states that are told, not steps.
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
from wms.jobs.states import QUEUED, WITH_PILOT, JobState

#: States of a job that tell more than that its node is submitted, the first found counts.
TELLING = (JobState.RUNNING.value, JobState.STALLED.value, JobState.HELD.value)
#: The states that are drawn; a node's byte is its place in this list.
DRAWN = (*NodeState.values, *TELLING)
#: So long a transaction that changes a job may take before its change is seen late.
_OVERLAP = timedelta(minutes=1)
#: Of so many changes the whole is sent instead.
MAX_CHANGES = 20_000

_LETTERS = "".join(chr(ord("a") + place) for place in range(len(DRAWN)))
_TO_BYTES = {
    ord(letter): place
    for letters in (_LETTERS, _LETTERS.upper())
    for place, letter in enumerate(letters)
}
_READ_STATES = read_node_states(dict(zip(NodeState.values, _LETTERS, strict=False)))
_SUBMITTED = DRAWN.index(NodeState.SUBMITTED.value)


@dataclass(frozen=True, slots=True)
class Version:
    """Up to where somebody knows the states of a DAG."""

    event_id: int
    seen_at: datetime

    def __str__(self) -> str:
        return f"{self.event_id}-{int(self.seen_at.timestamp())}"


def read_version(text: str) -> Version | None:
    """The version that a text names; None if it names none."""
    event_id, _, seconds = text.partition("-")
    if not (_is_number(event_id) and _is_number(seconds)):
        return None
    return Version(int(event_id), datetime.fromtimestamp(int(seconds), UTC))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 11


@dataclass(frozen=True, slots=True)
class States:
    """The state of each node of a drawing as a place in `DRAWN`.

    `counts` are those of the nodes' own states, whatever their jobs tell.
    """

    version: Version
    codes: bytes
    counts: NodeCounts


@dataclass(frozen=True, slots=True)
class OwnStates:
    """The states of all nodes without what their jobs tell: until the next event, the same."""

    codes: bytes
    counts: NodeCounts


@dataclass(frozen=True, slots=True)
class Changes:
    """The states of nodes that changed, by number in the drawing; None if there are too many."""

    version: Version
    codes: Mapping[int, int] | None


def version_of(dag: Dag) -> Version:
    """Up to where the states of a DAG can be known now."""
    with connection.cursor() as cursor:
        cursor.execute(READ_VERSION, [dag.pk])
        return Version(*cursor.fetchone())


def with_version(dags: QuerySet[Dag]) -> QuerySet[Dag]:
    """DAGs with what `version_with` needs, in the same query."""
    latest = NodeEvent.objects.filter(dag=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    return dags.annotate(latest_event=Coalesce(Subquery(latest), 0), read_at=Now())


def version_with(dag: Any) -> Version:
    """Up to where the states of a DAG could be known when it was read by `with_version`."""
    return Version(dag.latest_event, dag.read_at)


def states_of_nodes(dag: Dag, drawing: Drawing) -> States:
    """The states of all nodes. Whatever changes meanwhile is told by `changes_since` again."""
    version = version_of(dag)
    return with_jobs(dag, drawing, version, own_states(dag))


def own_states(dag: Dag) -> OwnStates:
    """What the nodes' rows tell of their states; one query."""
    with connection.cursor() as cursor:
        cursor.execute(_READ_STATES, [list(COUNTED_KINDS), dag.pk])
        letters = cursor.fetchone()[0] or ""
    counted, every = Counter[str](), Counter[str]()
    for state, letter in zip(NodeState.values, _LETTERS, strict=False):
        counted[state] = letters.count(letter)
        every[state] = counted[state] + letters.count(letter.upper())
    codes = bytes(letters.translate(_TO_BYTES), "latin-1")
    # Only of states that there are.
    return OwnStates(codes, NodeCounts(+counted, +every))


def with_jobs(dag: Dag, drawing: Drawing, version: Version, own: OwnStates) -> States:
    """The states with submitted nodes drawn as their jobs are; a query if there are such nodes."""
    codes = bytearray(own.codes)
    if _SUBMITTED in codes:
        telling = jobs_of(dag.pk).filter(state__in=TELLING)
        for node_id, code in _looks_by_jobs(telling).items():
            index = drawing.index_of(node_id)
            if index is not None and codes[index] == _SUBMITTED:
                codes[index] = code
    return States(version, bytes(codes), own.counts)


def changes_since(dag: Dag, drawing: Drawing, known: Version) -> Changes:
    """What differs from the states of a version, and perhaps some that do not."""
    version = version_of(dag)
    events = NodeEvent.objects.filter(dag=dag, pk__gt=known.event_id).order_by()
    moved = set(events.values_list("node_id", flat=True).distinct()[: MAX_CHANGES + 1])
    alive = jobs_of(dag.pk).filter(state__in=[*QUEUED, *WITH_PILOT])
    firsts = _firsts(alive.filter(state_since__gte=known.seen_at - _OVERLAP)[: MAX_CHANGES + 1])
    if len(moved) > MAX_CHANGES or len(firsts) > MAX_CHANGES:
        return Changes(version, None)
    rows = Node.objects.filter(Q(pk__in=moved) | Q(job_id__in=firsts), dag=dag)
    states = {pk: (state, job) for pk, state, job in rows.values_list("pk", "state", "job_id")}
    under_way = {
        job for state, job in states.values() if job and state == NodeState.SUBMITTED.value
    }
    telling = jobs_of(dag.pk).filter(state__in=TELLING)
    looks = _looks_by_jobs(telling.filter(Q(pk__in=under_way) | Q(cluster_id__in=under_way)))
    codes = {}
    for pk, (state, _) in states.items():
        index = drawing.index_of(pk)
        if index is not None:
            code = DRAWN.index(state)
            codes[index] = looks.get(pk, code) if code == _SUBMITTED else code
    return Changes(version, codes)


def _firsts(jobs: QuerySet[Job]) -> set[int]:
    """The first jobs of the clusters of these."""
    return {cluster or pk for pk, cluster in jobs.values_list("pk", "cluster_id")}


def _looks_by_jobs(telling: QuerySet[Job]) -> dict[int, int]:
    """The codes of the nodes whose jobs these are, by the node's id; one query."""
    # The jobs of a cluster stand for one node, which knows the first of them.
    node = Node.objects.filter(job_id=OuterRef("first")).values("pk")[:1]
    rows = telling.annotate(first=Coalesce("cluster_id", "pk"), node=Subquery(node))
    looks: dict[int, int] = {}
    for node_id, state in rows.values_list("node", "state"):
        code = DRAWN.index(state)
        looks[node_id] = min(code, looks.get(node_id, code))
    return looks

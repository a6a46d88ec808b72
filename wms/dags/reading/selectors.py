"""Reading DAGs, their nodes, events and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import rustworkx
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import (
    BigIntegerField,
    BooleanField,
    Count,
    ExpressionWrapper,
    JSONField,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Value,
)

from matching.unmatched_reasons import Kind
from wms.core.errors import NotFound
from wms.core.models import User
from wms.dags.models import Dag, DagEvent, Edge, MatchRecord, Node, NodeEvent
from wms.dags.reading.dag_jobs import DAG_ID, dag_id_of, jobs_of
from wms.dags.states import COUNTED_KINDS, DagState, NodeState
from wms.jobs.models import Job, WorkspaceFile
from wms.jobs.states import QUEUED, WITH_PILOT, JobState

#: A DAG that waits so long for a site wants to be looked at.
_IDLE_TOO_LONG = timedelta(minutes=10)
#: A failed DAG is brought up for so long.
_FAILED_LATELY = timedelta(days=1)
_LIST_COLUMNS = (
    "name", "owner__username", "site__name", "state", "state_since", "state_reason", "state_cause",
    "unmatched_reason", "node_count", "done_count", "failed_count", "futile_count",
    "submitted_count", "ready_count", "status", "exit_code", "root_id", "parent_node_id",
    "created_at", "ended_at",
)  # fmt: skip
#: What a DAG's page shows of other rows.
DETAILS = ("owner", "site", "workspace", "accounting_group", "parent_node__dag", "previous_run")
#: States of a job that tell more than that its node is submitted.
_TELLING = frozenset({JobState.RUNNING.value, JobState.STALLED.value, JobState.HELD.value})


@dataclass(frozen=True, slots=True)
class DagEventLine:
    """One event of a DAG or of one of its nodes; `subject` names the node, `node` is its id.

    `facts` are those of the DAG's own events.
    """

    created_at: datetime
    event: str
    from_state: str
    to_state: str
    actor: str
    reason: str
    pk: int
    subject: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    node: int | None = None


@dataclass(frozen=True, slots=True)
class EventsBefore:
    """Where a page of events ends: the ids of the DAG's and the nodes' that were shown before."""

    dag_event: int | None = None
    node_event: int | None = None


FROM_THE_LATEST = EventsBefore()


@dataclass(frozen=True, slots=True)
class LevelNode:
    """A node in the drawing of a DAG by levels.

    Its state is the job's where that tells more than that the node is submitted.
    """

    id: int
    name: str
    state: str


def visible_dags(user: User) -> QuerySet[Dag]:
    """The DAGs that the user may read: at present all of them."""
    return Dag.objects.all() if user.is_active else Dag.objects.none()


def listed_dags(user: User) -> QuerySet[Dag]:
    """Visible DAGs with what a line of a list shows, latest first."""
    return visible_dags(user).select_related("owner", "site").only(*_LIST_COLUMNS).order_by("-pk")


def needing_attention(dags: QuerySet[Dag], *, now: datetime) -> QuerySet[Dag]:
    """Those that are held, failed within a day, are failing, or wait long or in vain for a site."""
    return dags.filter(_needs_attention(now))


def _needs_attention(now: datetime) -> Q:
    return (
        Q(state=DagState.HELD)
        | Q(state=DagState.FAILED, state_since__gte=now - _FAILED_LATELY)
        | Q(state=DagState.RUNNING, failed_count__gt=0)
        | Q(state=DagState.IDLE, state_since__lt=now - _IDLE_TOO_LONG)
        | Q(state=DagState.IDLE, unmatched_kind=Kind.NO_SITE)
    )


def attention_and_running(
    dags: QuerySet[Dag], *, now: datetime, limit: int
) -> tuple[list[Dag], list[Dag]]:
    """Of listed DAGs the latest that need attention, and the latest that run. One query."""
    plain, needs = dags.order_by().select_related(None), _needs_attention(now)
    needy = plain.filter(needs).order_by("-state_since", "-pk").values("pk")[:limit]
    running = plain.filter(state=DagState.RUNNING).order_by("-pk").values("pk")[:limit]
    told = dags.annotate(is_needy=ExpressionWrapper(needs, BooleanField()))
    found = told.filter(Q(pk__in=needy) | Q(pk__in=running)).order_by("-state_since", "-pk")
    of_needy: list[Dag] = [dag for dag in found if dag.is_needy]
    of_running: list[Dag] = [dag for dag in found if dag.state == DagState.RUNNING]
    return of_needy[:limit], sorted(of_running, key=lambda dag: -dag.pk)[:limit]


def detailed_dags(user: User) -> QuerySet[Dag]:
    """Visible DAGs with what a DAG's page shows."""
    return visible_dags(user).select_related(*DETAILS)


def nodes_of(dag: Dag) -> QuerySet[Node]:
    """The nodes of a DAG in the order of its file, with their first jobs."""
    return (
        Node.objects.filter(dag=dag)
        .select_related("job", "work")
        .only(
            "name", "kind", "ordinal", "priority", "category", "state", "state_since",
            "state_reason", "max_retries", "retry_number", "job__state",
            "job__state_since", "job__attempt_number", "work__job_count", "work__jobs_left",
            "work__inner_dag", "work__request",
        )
        .order_by("ordinal")
    )  # fmt: skip


def nodes_of_jobs(jobs: Collection[Job]) -> dict[int, Node]:
    """The node that each of these jobs serves now, with its DAG; jobs without one are absent."""
    clusters = {job.pk: job.cluster_id or job.pk for job in jobs if dag_id_of(job)}
    nodes = Node.objects.filter(job_id__in=set(clusters.values())).select_related("dag")
    columns = ("name", "ordinal", "job_id", "dag__name", "dag__state")
    found = {node.job_id: node for node in nodes.only(*columns)}
    return {pk: found[first] for pk, first in clusters.items() if first in found}


def dags_of_jobs(jobs: Collection[Job]) -> dict[int, Dag]:
    """The DAG that each of these jobs was made for, by the job's id; single jobs are absent."""
    keys = {job.pk: dag_id for job in jobs if (dag_id := dag_id_of(job)) is not None}
    dags = Dag.objects.filter(pk__in=set(keys.values())).only("name", "state").in_bulk()
    return {pk: dags[key] for pk, key in keys.items() if key in dags}


def dag_event_lines(
    dag: Dag, *, limit: int, before: EventsBefore = FROM_THE_LATEST
) -> list[DagEventLine]:
    """The latest events of the DAG and its nodes, latest first; one query."""
    columns = ("created_at", "event", "from_state", "to_state", "actor", "reason", "pk")
    nothing = Value({}, output_field=JSONField())
    none = Value(None, output_field=BigIntegerField())
    own = DagEvent.objects.filter(dag=dag)
    of_nodes = NodeEvent.objects.filter(dag=dag)
    if before.dag_event is not None:
        own = own.filter(pk__lt=before.dag_event)
    if before.node_event is not None:
        of_nodes = of_nodes.filter(pk__lt=before.node_event)
    of_dag = own.order_by("-pk").values_list(*columns, Value(""), "facts", none)[:limit]
    told = (*columns, "node__name", nothing, "node_id")
    of_each = of_nodes.order_by("-pk").values_list(*told)[:limit]
    lines = [DagEventLine(*values) for values in of_dag.union(of_each, all=True)]
    # What happened at the same time: that of the DAG first.
    lines.sort(key=lambda line: (line.created_at, not line.subject, line.pk), reverse=True)
    return lines[:limit]


def files_of(dag: Dag) -> QuerySet[WorkspaceFile]:
    """The files of a DAG's workspace by name, with their sizes and the jobs that made them."""
    return (
        WorkspaceFile.objects.filter(workspace_id=dag.workspace_id)
        .select_related("blob", "attempt")
        .only("path", "modified_at", "blob__size_bytes", "attempt__job_id")
        .order_by("path")
    )


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """How many nodes are in each state: of those that make the DAG's end, and of all."""

    counted: Mapping[str, int]
    every: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Levels:
    """The nodes of a small DAG by level: each one below all of its parents.

    FINAL and what else stands beside the others is left out; the counts have all of them.
    """

    rows: Sequence[Sequence[LevelNode]]
    counts: NodeCounts


def levels_of(dag: Dag) -> Levels:
    """All nodes by level; one query."""
    parents = ArraySubquery(Edge.objects.filter(child=OuterRef("pk")).values("parent_id"))
    columns = ("pk", "name", "kind", "state", "job__state", parents)
    rows = list(Node.objects.filter(dag=dag).order_by("ordinal").values_list(*columns))
    nodes = {
        pk: LevelNode(pk, name, job_state if _is_told_by_job(state, job_state) else state)
        for pk, name, kind, state, job_state, _ in rows
        if kind in COUNTED_KINDS
    }
    graph: rustworkx.PyDiGraph[int, None] = rustworkx.PyDiGraph()
    place = dict(zip(nodes, graph.add_nodes_from(list(nodes)), strict=True))
    arcs = [(place[parent], place[pk]) for pk, *_, above in rows for parent in above]
    graph.add_edges_from_no_data(arcs)
    levels = [
        [nodes[graph[index]] for index in sorted(level)]
        for level in rustworkx.topological_generations(graph)
    ]
    return Levels(levels, _counted([(state, kind, 1) for _, _, kind, state, *_ in rows]))


def _is_told_by_job(state: str, job_state: str | None) -> bool:
    return state == NodeState.SUBMITTED and job_state in _TELLING


def find_dag(user: User, dag_id: int) -> Dag:
    """One visible DAG with what its page shows. Raises NotFound."""
    return dag_among(detailed_dags(user), dag_id)


def dag_among(dags: QuerySet[Dag], dag_id: int) -> Dag:
    """The one of these DAGs with this id. Raises NotFound."""
    dag = dags.filter(pk=dag_id).first()
    if dag is None:
        raise NotFound(f"There is no DAG {dag_id}, or you may not see it.")
    return dag


def nodes_with_parents(dag: Dag) -> QuerySet[Node]:
    """The nodes of a DAG with the names of their submit descriptions and of their parents."""
    edges = Edge.objects.select_related("parent").only("child_id", "parent__name")
    return (
        Node.objects.filter(dag=dag)
        .select_related("submit_description")
        .defer("submit_description__content")
        .prefetch_related(Prefetch("parent_edges", edges.order_by("parent__ordinal")))
        .order_by("ordinal")
    )


@dataclass(frozen=True, slots=True)
class JobCounts:
    """The jobs of a DAG that have not ended: in no pilot yet, and in one."""

    queued: int = 0
    running: int = 0


def unfinished_jobs(dag_ids: Collection[int]) -> dict[int, JobCounts]:
    """How many unfinished jobs each of these DAGs has; a DAG without any is absent."""
    jobs = jobs_of(*dag_ids).filter(state__in=[*QUEUED, *WITH_PILOT])
    counted = (
        jobs.order_by()
        .values_list(DAG_ID)
        .annotate(
            queued=Count("pk", filter=Q(state__in=QUEUED)),
            running=Count("pk", filter=Q(state__in=WITH_PILOT)),
        )
    )
    return {dag_id: JobCounts(queued, running) for dag_id, queued, running in counted}


def counts_by_state(dag: Dag) -> NodeCounts:
    """How many nodes of a DAG are in each state; one query."""
    rows = (
        Node.objects.filter(dag=dag).order_by().values_list("state", "kind").annotate(Count("pk"))
    )
    return _counted(rows)


def _counted(rows: Iterable[tuple[str, str, int]]) -> NodeCounts:
    counted, every = Counter[str](), Counter[str]()
    for state, kind, count in rows:
        every[state] += count
        counted[state] += count if kind in COUNTED_KINDS else 0
    return NodeCounts(counted, every)


def matches_of(dag: Dag) -> QuerySet[MatchRecord]:
    """The stays of a DAG at sites, latest first, with the sites' names."""
    records = MatchRecord.objects.filter(dag=dag).select_related("site")
    return records.defer("site__requirements", "site__attributes").order_by("-pk")


def node_events(dag: Dag) -> QuerySet[NodeEvent]:
    """What happened to the nodes of a DAG, latest first, with the nodes' names."""
    return dag.node_events.select_related("node").defer("node__variables").order_by("-pk")

"""Selectors of DAGs, their nodes, levels, events, files, matches, and counts of nodes and jobs.

Also which DAGs a user may see, those that need a person's attention, and DAGs and nodes of jobs.
"""

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
    Case,
    Count,
    ExpressionWrapper,
    F,
    IntegerField,
    JSONField,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Value,
    When,
)

from matching.negotiation.unmatched_reasons import Kind
from wms.accounting.walls import Walls, seen_by
from wms.core.errors import NotFound
from wms.core.models import User
from wms.dags.joins.selectors import has_unhandled
from wms.dags.models import Dag, DagEvent, Edge, MatchRecord, Node, NodeEvent
from wms.dags.reading.dag_jobs import DAG_ID, dag_id_of, jobs_of
from wms.dags.states import COUNTED_KINDS, DagState, NodeKind, NodeState
from wms.jobs.models import Job, WorkspaceFile
from wms.jobs.states import QUEUED, WITH_PILOT, JobState

#: Time after which an idle DAG needs attention.
_IDLE_TOO_LONG = timedelta(minutes=10)
#: Time for which a failed DAG needs attention.
_FAILED_LATELY = timedelta(days=1)
_LIST_COLUMNS = (
    "name", "owner__username", "site__name", "state", "state_since", "state_reason", "state_cause",
    "unmatched_reason", "binding", "node_count", "done_count", "failed_count", "futile_count",
    "skipped_count", "submitted_count", "ready_count", "status", "exit_code", "root_id",
    "parent_node_id", "created_at", "ended_at", "labels", "priority",
)  # fmt: skip
#: DAGs that lose work come before those that wait for a person, and those before idle ones.
_SEVERITY = Case(
    When(state__in=[DagState.RUNNING, DagState.FAILED], then=0),
    When(state=DagState.HELD, then=1),
    default=2,
    output_field=IntegerField(),
)
_AFFECTED = F("failed_count") + F("futile_count")
_BY_SEVERITY = ("severity", "-affected", "state_since", "-pk")
#: Related rows on a DAG's page.
DETAILS = ("owner", "site", "workspace", "accounting_group", "parent_node__dag", "previous_run")
#: States of jobs that are shown instead of `submitted`.
_SHOWN_JOB_STATES = frozenset({JobState.RUNNING.value, JobState.STALLED.value, JobState.HELD.value})


@dataclass(frozen=True, slots=True)
class DagEventLine:
    """Event of a DAG or of one of its nodes; `subject` is the node's name, `node` its id.

    Only events of the DAG itself have `facts`.
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
    """Cursor of a page of events: ids of the last DAG event and node event shown before."""

    dag_event: int | None = None
    node_event: int | None = None


FROM_THE_LATEST = EventsBefore()


@dataclass(frozen=True, slots=True)
class LevelNode:
    """Node in the drawing of a DAG by levels.

    The state is that of its job where it is more specific than `submitted`.
    """

    id: int
    name: str
    state: str


def visible_dags(user: User) -> QuerySet[Dag]:
    """DAGs that the user may read: those of the user's frontends (`wms.accounting.walls`)."""
    return seen_by(user, Dag.objects.all(), Walls.by_group)


def listed_dags(user: User) -> QuerySet[Dag]:
    """Visible DAGs with the columns of a list, latest first."""
    return visible_dags(user).select_related("owner", "site").only(*_LIST_COLUMNS).order_by("-pk")


def needing_attention(dags: QuerySet[Dag], *, now: datetime) -> QuerySet[Dag]:
    """DAGs held, failed within a day, with failed nodes, or waiting long or in vain for a site.

    A failure that the DAG handles or tolerates needs nobody.
    """
    return dags.filter(_needs_attention(now))


def _needs_attention(now: datetime) -> Q:
    return (
        Q(state=DagState.HELD)
        | Q(state=DagState.FAILED, state_since__gte=now - _FAILED_LATELY)
        | (Q(state=DagState.RUNNING, failed_count__gt=0) & has_unhandled())
        | Q(state=DagState.IDLE, state_since__lt=now - _IDLE_TOO_LONG)
        | Q(state=DagState.IDLE, unmatched_kind__in=[Kind.NO_SITE, Kind.NODES])
    )


def attention_and_running(
    dags: QuerySet[Dag], *, now: datetime, needy_limit: int, running_limit: int
) -> tuple[list[Dag], list[Dag]]:
    """DAGs that need attention, the most severe first, and the latest running ones. One query.

    Failing and failed DAGs come before held ones, and those before idle ones; of one severity
    those with most nodes that failed or cannot run come first, then those in need for longest.
    """
    plain, needs = dags.order_by().select_related(None), _needs_attention(now)
    ranked = plain.filter(needs).annotate(severity=_SEVERITY, affected=_AFFECTED)
    needy = ranked.order_by(*_BY_SEVERITY).values("pk")[:needy_limit]
    running = plain.filter(state=DagState.RUNNING).order_by("-pk").values("pk")[:running_limit]
    annotated = dags.annotate(
        is_needy=ExpressionWrapper(needs, BooleanField()), severity=_SEVERITY, affected=_AFFECTED
    )
    chosen = annotated.filter(Q(pk__in=needy) | Q(pk__in=running)).order_by(*_BY_SEVERITY)
    of_needy: list[Dag] = [dag for dag in chosen if dag.is_needy]
    of_running: list[Dag] = [dag for dag in chosen if dag.state == DagState.RUNNING]
    latest = sorted(of_running, key=lambda dag: -dag.pk)
    return of_needy[:needy_limit], latest[:running_limit]


def detailed_dags(user: User) -> QuerySet[Dag]:
    """Visible DAGs with the related rows of a DAG's page."""
    return visible_dags(user).select_related(*DETAILS)


def kinds_but_jobs(dag: Dag) -> dict[int, str]:
    """Kinds of the nodes of a DAG that are no jobs, by id."""
    others = Node.objects.filter(dag=dag).exclude(kind=NodeKind.JOB).order_by("pk")
    return dict(others.values_list("pk", "kind"))


def nodes_of(dag: Dag) -> QuerySet[Node]:
    """Nodes of a DAG in the order of its file, with their first jobs."""
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
    """Current nodes with their DAGs by job id; jobs without a node are absent."""
    clusters = {job.pk: job.cluster_id or job.pk for job in jobs if dag_id_of(job)}
    nodes = Node.objects.filter(job_id__in=set(clusters.values())).select_related("dag")
    columns = ("name", "ordinal", "job_id", "dag__name", "dag__state")
    by_job = {node.job_id: node for node in nodes.only(*columns)}
    return {pk: by_job[first] for pk, first in clusters.items() if first in by_job}


def dags_of_jobs(jobs: Collection[Job]) -> dict[int, Dag]:
    """DAGs by job id; jobs that belong to no DAG are absent."""
    keys = {job.pk: dag_id for job in jobs if (dag_id := dag_id_of(job)) is not None}
    dags = Dag.objects.filter(pk__in=set(keys.values())).only("name", "state").in_bulk()
    return {pk: dags[key] for pk, key in keys.items() if key in dags}


def dag_event_lines(
    dag: Dag, *, limit: int, before: EventsBefore = FROM_THE_LATEST
) -> list[DagEventLine]:
    """Events of the DAG and its nodes, latest first; one query."""
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
    node_columns = (*columns, "node__name", nothing, "node_id")
    of_each = of_nodes.order_by("-pk").values_list(*node_columns)[:limit]
    lines = [DagEventLine(*values) for values in of_dag.union(of_each, all=True)]
    # At the same time, events of the DAG come first.
    lines.sort(key=lambda line: (line.created_at, not line.subject, line.pk), reverse=True)
    return lines[:limit]


def files_of(dag: Dag) -> QuerySet[WorkspaceFile]:
    """Files of a DAG's workspace by path, with their sizes and the jobs that wrote them."""
    return (
        WorkspaceFile.objects.filter(workspace_id=dag.workspace_id)
        .select_related("blob", "attempt")
        .only("path", "modified_at", "blob__size_bytes", "attempt__job_id")
        .order_by("path")
    )


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """Number of nodes by state: of those that decide the DAG's outcome, and of all."""

    counted: Mapping[str, int]
    every: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Levels:
    """Nodes of a small DAG by level: each one below all of its parents.

    FINAL, SERVICE and PROVISIONER nodes are only in the counts.
    """

    rows: Sequence[Sequence[LevelNode]]
    counts: NodeCounts


def levels_of(dag: Dag) -> Levels:
    """Nodes of a DAG by level; one query."""
    parents = ArraySubquery(Edge.objects.filter(child=OuterRef("pk")).values("parent_id"))
    columns = ("pk", "name", "kind", "state", "job__state", parents)
    rows = list(Node.objects.filter(dag=dag).order_by("ordinal").values_list(*columns))
    nodes = {
        pk: LevelNode(pk, name, job_state if _shows_job_state(state, job_state) else state)
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


def _shows_job_state(state: str, job_state: str | None) -> bool:
    return state == NodeState.SUBMITTED and job_state in _SHOWN_JOB_STATES


def find_dag(user: User, dag_id: int) -> Dag:
    """Visible DAG with the related rows of its page. Raises NotFound."""
    return dag_among(detailed_dags(user), dag_id)


def dag_among(dags: QuerySet[Dag], dag_id: int) -> Dag:
    """DAG of this id in a queryset. Raises NotFound."""
    dag = dags.filter(pk=dag_id).first()
    if dag is None:
        raise NotFound(f"There is no DAG {dag_id}, or you may not see it.")
    return dag


def nodes_with_parents(dag: Dag) -> QuerySet[Node]:
    """Nodes of a DAG with the names of their submit descriptions and parents."""
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
    """Numbers of unfinished jobs of a DAG: queued, and with a pilot."""

    queued: int = 0
    running: int = 0


def unfinished_jobs(dag_ids: Collection[int]) -> dict[int, JobCounts]:
    """Numbers of unfinished jobs by DAG id; DAGs without any are absent."""
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
    """Number of nodes of a DAG by state; one query."""
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
    """Matches of a DAG, latest first, with the sites' names."""
    records = MatchRecord.objects.filter(dag=dag).select_related("site")
    return records.defer("site__requirements", "site__attributes").order_by("-pk")


def node_events(dag: Dag) -> QuerySet[NodeEvent]:
    """Events of the nodes of a DAG, latest first, with the nodes' names."""
    return dag.node_events.select_related("node").defer("node__variables").order_by("-pk")

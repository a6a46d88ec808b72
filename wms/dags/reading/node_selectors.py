"""Selectors of one node: parents and children, events, jobs, script runs, placements, inner DAGs.

Also counts of descendants, script runs of a DAG, and nodes of placement requests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet, Value

from wms.core.errors import NotFound
from wms.core.models import User
from wms.dags.joins.selectors import ArcView, conditions_of
from wms.dags.lifecycle import DATA_TOPIC
from wms.dags.models import Dag, Edge, Node, NodeEvent, ScriptRun
from wms.dags.reading.dag_jobs import jobs_of
from wms.dags.reading.obstacles import NodeRef
from wms.dags.reading.selectors import DETAILS, find_dag, visible_dags
from wms.dags.reading.sql import COUNT_DESCENDANTS
from wms.jobs.models import Job
from wms.jobs.selectors import of_clusters
from wms.placement.models import PlacementRequest

#: Limit of parents, and of children, that are listed.
_NEIGHBOURS = 100


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Parents or children of a node in the order of the file, up to a limit; `count` has all.

    `weak` are the ids of neighbours by weak arcs, `conditions` those of arcs that have one, by the
    neighbours' ids.
    """

    nodes: Sequence[NodeRef]
    count: int
    weak: frozenset[int]
    conditions: Mapping[int, ArcView]


def find_node(user: User, dag_id: int, node_id: int) -> Node:
    """Node of a visible DAG, with the DAG; one query. Raises NotFound."""
    nodes = Node.objects.filter(dag__in=visible_dags(user), dag_id=dag_id, pk=node_id)
    with_dag = (f"dag__{name}" for name in DETAILS)
    node = nodes.select_related("submit_description", "job", "work", *with_dag).first()
    if node is None:
        find_dag(user, dag_id)
        raise NotFound(f"DAG {dag_id} has no node {node_id}.")
    return node


def parents_and_children(node: Node) -> tuple[Neighbours, Neighbours]:
    """Parents and children of a node; one query for up to 100, two more for conditions."""
    above, below = Edge.objects.filter(child=node), Edge.objects.filter(parent=node)
    edge_rows = _nearest(above, "parent").union(_nearest(below, "child"), all=True)
    rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for end, _, *row in sorted(edge_rows):
        rows[end].append(tuple(row))
    before, after = conditions_of(node)
    return _neighbours(above, rows["parent"], before), _neighbours(below, rows["child"], after)


def _nearest(edges: QuerySet[Edge], end: str) -> QuerySet[Edge, tuple[Any, ...]]:
    columns = (f"{end}__ordinal", f"{end}_id", f"{end}__name", f"{end}__state", "is_weak")
    return edges.order_by(f"{end}__ordinal").values_list(Value(end), *columns)[: _NEIGHBOURS + 1]


def _neighbours(
    edges: QuerySet[Edge], rows: Sequence[tuple[Any, ...]], conditions: Sequence[ArcView]
) -> Neighbours:
    count = len(rows) if len(rows) <= _NEIGHBOURS else edges.count()
    shown = rows[:_NEIGHBOURS]
    return Neighbours(
        nodes=[NodeRef(pk, name, state) for pk, name, state, _ in shown],
        count=count,
        weak=frozenset(pk for pk, _, _, is_weak in shown if is_weak),
        conditions={each.node_id: each for each in conditions},
    )


def count_below(node_ids: Collection[int]) -> dict[str, int]:
    """Number of descendants of these nodes by state, without these nodes."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT_DESCENDANTS, {"given": list(node_ids)})
        return dict(cursor.fetchall())


def events_of_node(node: Node) -> QuerySet[NodeEvent]:
    """Events of a node, latest first."""
    return NodeEvent.objects.filter(node=node).order_by("-pk")


def jobs_of_node(node: Node) -> QuerySet[Job]:
    """Jobs of all attempts of a node, latest first."""
    submits = NodeEvent.objects.filter(node=node, event="submit", facts__has_key="job")
    firsts = list(submits.values_list("facts__job", flat=True))
    if node.job_id is not None:
        firsts.append(node.job_id)
    return jobs_of(node.dag_id).filter(of_clusters(firsts)).select_related("owner").order_by("-pk")


def script_runs_of(node: Node) -> QuerySet[ScriptRun]:
    """Script runs of a node, latest first."""
    return ScriptRun.objects.filter(node=node).select_related("output").order_by("-pk")


def script_runs_of_dag(dag: Dag) -> QuerySet[ScriptRun]:
    """Script runs of a DAG, latest first, with the nodes' names."""
    runs = ScriptRun.objects.filter(dag=dag).select_related("node", "output")
    return runs.defer("node__variables", "node__features").order_by("-pk")


def find_script_run(user: User, dag_id: int, run_id: int) -> ScriptRun:
    """Script run of a visible DAG. Raises NotFound."""
    run = script_runs_of_dag(find_dag(user, dag_id)).filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"DAG {dag_id} has no script run {run_id}.")
    return run


def requests_of_node(node: Node) -> QuerySet[PlacementRequest]:
    """Placement requests of a DATA node, latest first."""
    submits = NodeEvent.objects.filter(node=node, event="submit", facts__has_key="request")
    ids = list(submits.values_list("facts__request", flat=True))
    of_node = Q(pk__in=ids) | Q(leader__in=ids)
    requests = PlacementRequest.objects.filter(of_node).select_related("owner")
    return requests.defer("attributes").order_by("-pk")


def inner_dags_of_node(node: Node) -> QuerySet[Dag]:
    """Runs of a SUBDAG node's inner DAG, latest first."""
    return Dag.objects.filter(parent_node=node).select_related("owner", "site").order_by("-pk")


def nodes_of_requests(request_ids: Collection[int]) -> dict[int, Node]:
    """Nodes with their DAGs by placement request id."""
    requests = PlacementRequest.objects.filter(pk__in=request_ids, topic=DATA_TOPIC)
    found = list(requests.values_list("pk", "leader_id", "topic_key"))
    leaders = {pk: leader or pk for pk, leader, _ in found}
    submits = NodeEvent.objects.filter(
        dag_id__in={dag for _, _, dag in found},
        event="submit",
        facts__request__in=list(set(leaders.values())),
    ).select_related("node__dag")
    nodes = {event.facts["request"]: event.node for event in submits}
    return {pk: nodes[leader] for pk, leader in leaders.items() if leader in nodes}

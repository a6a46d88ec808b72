"""Obstacles of a node: what keeps it from running or ending now, by the rules of the engine.

Each has a kind for programs, a message for people, and what the node waits for. Also the room that
limits of a running DAG leave for ready nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Count, Q, QuerySet

from wms.dags.engine.gates import is_waiting
from wms.dags.engine.node_work import not_provisioned, work_of
from wms.dags.engine.round import options_of
from wms.dags.engine.settling.node_clusters import cluster_jobs
from wms.dags.engine.submitting.throttles import Capacity, capacity_under, limits_of
from wms.dags.joins.selectors import join_of
from wms.dags.models import Condition, Dag, Edge, Join, Node, ScriptRun, SharedLimit
from wms.dags.reading.sql import FIND_FAILED_ANCESTORS
from wms.dags.services.shared_limits import with_submitted
from wms.dags.states import (
    COUNTED_KINDS,
    DAG_TERMINAL,
    NODE_TERMINAL,
    DagState,
    NodeKind,
    NodeState,
    ScriptKind,
    ScriptState,
)
from wms.placement.models import PlacementRequest

_MANY = 2**31
_SHOWN = 20
_KIND_MESSAGES = {
    NodeKind.FINAL: "it runs when everything else has ended",
    NodeKind.SERVICE: "it is started with the DAG",
    NodeKind.PROVISIONER: "it is started with the DAG, before everything else",
}


@dataclass(frozen=True, slots=True)
class NodeRef:
    """Id, name and state of a node that is named in an obstacle or a list of neighbours."""

    id: int
    name: str
    state: str


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Obstacle of a node. `kind` is for programs, `message` for people.

    `nodes`, `dag`, `job` and `request` are the objects that the node waits for, if there are any.
    """

    kind: str
    message: str
    nodes: tuple[NodeRef, ...] = ()
    dag: int | None = None
    job: int | None = None
    request: int | None = None


def room_now(dag: Dag, limits: Iterable[SharedLimit] | None = None) -> Capacity | None:
    """Room that the limits of a running DAG leave for nodes; None without ready nodes.

    Read without locks, so it may change at once. `limits` are the shared limits, if they have been
    read by `with_submitted` already.
    """
    if dag.state != DagState.RUNNING or not dag.ready_count:
        return None
    shared: Iterable[Any] = with_submitted(limits_of(dag)) if limits is None else limits
    used = [(limit, limit.submitted) for limit in shared]
    return capacity_under(dag, options_of(dag), used, most=_MANY)


def obstacles_of(node: Node, *, now: datetime) -> list[Obstacle]:
    """Obstacles of a node, read with its DAG; empty once it has ended."""
    dag = node.dag
    if node.state == NodeState.FUTILE:
        return _failed_ancestors(node)
    if node.state == NodeState.SKIPPED:
        return [_skipped(node)]
    if node.state in (NodeState.DONE, NodeState.FAILED):
        return []
    obstacles = _dag_obstacles(dag)
    match node.state:
        case NodeState.WAITING:
            obstacles += _obstacles_before_ready(node)
        case NodeState.READY:
            obstacles += _obstacles_before_submission(node)
        case NodeState.SUBMITTED:
            obstacles += _submitted_obstacles(node)
        case _:
            obstacles += _script_obstacles(node, now)
    return obstacles


def _dag_obstacles(dag: Dag) -> list[Obstacle]:
    if dag.state in DAG_TERMINAL:
        return [Obstacle("dag", f"the DAG has ended: it is {dag.state}", dag=dag.pk)]
    if dag.state == DagState.IDLE:
        why = dag.unmatched_reason or "the negotiator has not looked at it yet"
        return [Obstacle("site", f"the DAG has no site: {why}", dag=dag.pk)]
    if dag.state in (DagState.HELD, DagState.HALTED):
        return [Obstacle("dag", f"the DAG is {dag.state}: {dag.state_reason}", dag=dag.pk)]
    if dag.is_ending:
        return [Obstacle("dag", "the DAG is ending: only its FINAL node runs", dag=dag.pk)]
    if dag.binds_jobs and dag.unmatched_reason:
        return [Obstacle("site", f"no site accepts the DAG: {dag.unmatched_reason}", dag=dag.pk)]
    return []


def _obstacles_before_ready(node: Node) -> list[Obstacle]:
    if node.kind in _KIND_MESSAGES:
        return [Obstacle("kind", _KIND_MESSAGES[NodeKind(node.kind)])]
    if node.unfinished_parents and (join := join_of(node)) is not None:
        return [_unmet(node, join)]
    if node.unfinished_parents:
        edges = Edge.objects.filter(child=node).exclude(parent__state=NodeState.DONE)
        edges = edges.exclude(is_weak=True, parent__state=NodeState.FAILED)
        edges = edges.exclude(parent__state=NodeState.FAILED, parent__work__is_tolerated=True)
        parents = _refs(Node.objects.filter(child_edges__in=edges))
        count = node.unfinished_parents
        message = f"{count} parent{'' if count == 1 else 's'} must end first"
        return [Obstacle("parents", message, nodes=parents)]
    refs = _refs(not_provisioned(node.dag))
    if refs:
        return [Obstacle("provisioner", "the provisioner is not ready yet", nodes=refs)]
    return [Obstacle("turn", "the engine has not looked at it yet")]


def _unmet(node: Node, join: Join) -> Obstacle:
    """Waiting for arcs that may hold, of which the parents have not ended."""
    open_parents = Node.objects.filter(child_edges__child=node).exclude(state__in=NODE_TERMINAL)
    message = (
        f"{join.needed_count} of its {join.arc_count} arcs have to hold: {join.held_count} do, "
        f"{join.ruled_out_count + join.lost_count} do not"
    )
    return Obstacle("join", message, nodes=_refs(open_parents))


def _skipped(node: Node) -> Obstacle:
    """Why the node was skipped, with the parents that ruled it out."""
    by_condition = Condition.objects.filter(child=node, holds=False).values("parent")
    skipped = Node.objects.filter(child_edges__child=node, state=NodeState.SKIPPED).values("pk")
    parents = _refs(Node.objects.filter(Q(pk__in=by_condition) | Q(pk__in=skipped)))
    return Obstacle("skipped", f"it was skipped: {node.state_reason}", nodes=parents)


def _obstacles_before_submission(node: Node) -> list[Obstacle]:
    if is_waiting(node):
        return [Obstacle("gate", f"it {node.state_reason}")]
    dag = node.dag
    room = room_now(dag) if node.kind in COUNTED_KINDS else None
    if room is None:
        return [Obstacle("turn", "it is about to be submitted")]
    obstacles = []
    if room.nodes == 0 and (node.kind != NodeKind.DATA or room.data_nodes == 0):
        obstacles.append(Obstacle("limit", room.reason))
    if node.category in room.categories and not room.categories[node.category]:
        obstacles.append(Obstacle("category", room.reasons[node.category]))
    before = _ready_before(node)
    if before and not obstacles:
        obstacles.append(
            Obstacle("turn", f"{before} ready node{'' if before == 1 else 's'} come first")
        )
    return obstacles or [Obstacle("turn", "it is about to be submitted")]


def _ready_before(node: Node) -> int:
    ready = Node.objects.filter(dag=node.dag, state=NodeState.READY, kind__in=COUNTED_KINDS)
    same = Q(priority=node.priority)
    is_before = (
        Q(priority__gt=node.priority)
        | (same & Q(ready_rank__lt=node.ready_rank))
        | (same & Q(ready_rank=node.ready_rank, ordinal__lt=node.ordinal))
    )
    return ready.filter(is_before).count()


def _script_obstacles(node: Node, now: datetime) -> list[Obstacle]:
    run = ScriptRun.objects.filter(node=node).exclude(state=ScriptState.ENDED).first()
    if run is None:
        return [Obstacle("script", "the engine has not looked at the end of its script yet")]
    what = f"its {run.get_kind_display()} script"
    if run.state == ScriptState.RUNNING:
        return [Obstacle("script", f"{what} runs")]
    if run.due_at is not None and run.due_at > now:
        return [
            Obstacle("script", f'{what} said "not yet" and runs again at {run.due_at:%H:%M:%S} UTC')
        ]
    if run.state == ScriptState.GRANTED:
        return [Obstacle("script", f"{what} waits for the service that runs scripts")]
    limit = _slots(node.dag, ScriptKind(run.kind))
    return [Obstacle("script slot", f"{what} waits for its turn: at most {limit} run at once")]


def _slots(dag: Dag, kind: ScriptKind) -> int:
    options = options_of(dag)
    return {
        ScriptKind.PRE: options.max_pre,
        ScriptKind.POST: options.max_post,
        ScriptKind.HOLD: options.max_hold_scripts,
    }[kind]


def _submitted_obstacles(node: Node) -> list[Obstacle]:
    work = work_of(node)
    if work.inner_dag_id is not None:
        inner = Dag.objects.filter(pk=work.inner_dag_id).first()
        state = inner.state if inner is not None else "gone"
        return [Obstacle("inner dag", f"its inner DAG is {state}", dag=work.inner_dag_id)]
    if work.request_id is not None:
        request = PlacementRequest.objects.filter(pk=work.request_id).first()
        state = request.state if request is not None else "gone"
        message = f"its placement request is {state}"
        return [Obstacle("request", message, request=work.request_id)]
    if node.job_id is None:
        return []
    states = cluster_jobs([node.job_id]).values_list("state").annotate(Count("pk")).order_by()
    return [
        Obstacle("jobs", f"{count} job{'' if count == 1 else 's'} {state}", job=node.job_id)
        for state, count in sorted(states)
    ]


def _failed_ancestors(node: Node) -> list[Obstacle]:
    with connection.cursor() as cursor:
        cursor.execute(FIND_FAILED_ANCESTORS, [node.pk, _SHOWN])
        ids = [row[0] for row in cursor.fetchall()]
    failed = _refs(Node.objects.filter(pk__in=ids))
    return [Obstacle("failed parents", "it will not run: nodes before it failed", nodes=failed)]


def _refs(nodes: QuerySet[Node]) -> tuple[NodeRef, ...]:
    rows: Iterable[tuple[int, str, str]] = nodes.order_by("ordinal").values_list(
        "pk", "name", "state"
    )[:_SHOWN]
    return tuple(NodeRef(*row) for row in rows)

"""Views of the node page, of actions on nodes with their preview, and of script output.

Script output is a download.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from portal.web.nodes.forms import NodeActionForm
from portal.web.shared.downloads import send_download
from portal.web.shared.pages import page, render_page
from portal.web.shared.stale_forms import version_of, while_version
from wms.actions.arguments import Order
from wms.actions.nodes import NodeAction, actions_on_node, find_on_page
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted, PilotageError
from wms.dags.engine.gates import gate_of
from wms.dags.engine.node_features import features_of
from wms.dags.models import Dag, Node, ScriptRun
from wms.dags.policy import require_decision, require_steering
from wms.dags.reading.node_selectors import (
    count_below,
    events_of_node,
    find_node,
    find_script_run,
    inner_dags_of_node,
    jobs_of_node,
    parents_and_children,
    requests_of_node,
    script_runs_of,
)
from wms.dags.reading.obstacles import obstacles_of
from wms.dags.reading.selectors import find_dag
from wms.dags.services.nodes import MAX_NODES
from wms.dags.states import DAG_TERMINAL, NODE_TERMINAL, NodeKind, NodeState, ScriptState
from wms.jobs.content.blobs import read_tail
from wms.jobs.selectors import latest_attempts

_EVENTS_SHOWN = 100
_JOBS_SHOWN = 100
_RUNS_SHOWN = 50
#: Of so many of them the end of the output is shown as well.
_OUTPUTS_SHOWN = 5
_TAIL_BYTES = 8 * 1024
_NODES_SHOWN = 50
_COLUMNS = (
    "name", "ordinal", "kind", "state", "state_reason", "priority", "retry_number", "max_retries",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run of a script with the end of its output; `badge_state` is the state of its badge."""

    run: ScriptRun
    badge_state: str
    tail: str
    is_cut: bool


@require_safe
@page
def node_page(request: HttpRequest, dag_id: int, node_id: int) -> HttpResponse:
    """Page of one node."""
    node = find_node(request.user, dag_id, node_id)
    dag = node.dag
    is_subdag, is_data = node.kind == NodeKind.SUBDAG, node.kind == NodeKind.DATA
    jobs = [] if is_subdag or is_data else list(jobs_of_node(node)[: _JOBS_SHOWN + 1])
    parents, children = parents_and_children(node)
    runs = list(script_runs_of(node)[: _RUNS_SHOWN + 1])
    events = list(events_of_node(node)[: _EVENTS_SHOWN + 1])
    attempts = latest_attempts([job.pk for job in jobs])
    context = {
        "dag": dag,
        "node": node,
        "features": features_of(node.features),
        "description": node.submit_description,
        "steerings": actions_on_node(request.user, node),
        "seen": _version_of(dag, [node.name]) if node.kind == NodeKind.GATE else "",
        "obstacles": obstacles_of(node, now=timezone.now()),
        "parents": parents,
        "children": children,
        "jobs": [(job, attempts.get(job.pk)) for job in jobs[:_JOBS_SHOWN]],
        "jobs_cut": len(jobs) > _JOBS_SHOWN,
        "runs": [_run_line(run, place) for place, run in enumerate(runs[:_RUNS_SHOWN])],
        "runs_cut": len(runs) > _RUNS_SHOWN,
        "inner": list(inner_dags_of_node(node)[:_RUNS_SHOWN]) if is_subdag else [],
        "requests": list(requests_of_node(node)[:_RUNS_SHOWN]) if is_data else [],
        "events": events[:_EVENTS_SHOWN],
        "events_cut": len(events) > _EVENTS_SHOWN,
    }
    return render_page(request, "node", context)


def _run_line(run: ScriptRun, place: int) -> RunLine:
    has_failed = run.state == ScriptState.ENDED and run.exit_code != 0
    badge_state = "failed" if has_failed else run.state
    if run.output is None or place >= _OUTPUTS_SHOWN:
        return RunLine(run, badge_state, "", is_cut=False)
    tail = read_tail(run.output.sha256, limit_bytes=_TAIL_BYTES)
    return RunLine(run, badge_state, tail, is_cut=run.output.size_bytes > _TAIL_BYTES)


@require_safe
@page
def script_output(request: HttpRequest, dag_id: int, run_id: int) -> HttpResponseBase:
    """Output of a script run, as a download."""
    run = find_script_run(request.user, dag_id, run_id)
    if run.output is None:
        raise NotFound(f"Script run {run_id} has printed nothing.")
    return send_download(request, run.output, f"script-{run.pk}.{run.kind}.txt")


@dataclass(frozen=True, slots=True)
class SelectedNodes:
    """Selected nodes: those on which the action can be taken, and the others with the reason."""

    nodes: Sequence[Node]
    left: Sequence[tuple[Node, str]]
    #: More were asked for than one request takes.
    is_cut: bool = False


@require_http_methods(["GET", "HEAD", "POST"])
@page
def steer_nodes(request: HttpRequest, dag_id: int, event: str) -> HttpResponse:
    """Preview of an action on nodes, or the action itself.

    Nodes are given by their ids in `node`, all of a state by `state`, or by their names.
    """
    steering = find_on_page(event)
    if steering is None:
        raise Http404
    dag = find_dag(request.user, dag_id)
    if not steering.decides_gates:
        require_steering(Actor.person(request.user), [dag])
    if request.method != "POST":
        return _confirm(request, dag, steering, _asked_for(request, dag, steering))
    names = request.POST.get("nodes", "").split()
    try:
        given = {**NodeActionForm(steering.action, request.POST).options(), "nodes": names}
        order = Order(Actor.person(request.user), given.pop("reason"), given)
        # Whoever changes nodes of a DAG has locked it.
        rows, now = Dag.objects.filter(pk=dag.pk), partial(_version_of, names=names)
        with while_version(request, rows, now, what="some of these nodes"):
            applied = steering.action.act(dag.pk, order)
        if not applied.changed:
            why = "it is so already" if steering.decides_gates else "the nodes are under way"
            raise Conflict(f"Nothing was done: {why}.")
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        chosen = _chosen(dag, steering, Node.objects.filter(dag=dag, name__in=names[:MAX_NODES]))
        return _confirm(request, dag, steering, chosen, error=error)
    return _done(request, dag, steering, names, len(applied.changed))


def _asked_for(request: HttpRequest, dag: Dag, steering: NodeAction) -> SelectedNodes:
    state = request.GET.get("state", "")
    nodes = Node.objects.filter(dag=dag)
    if state:
        if state not in NodeState.values:
            raise NotFound(f"There is no node state {state!r}.")
        return _chosen(dag, steering, nodes.filter(state=state))
    given = request.GET.getlist("node")[:MAX_NODES]
    ids = [int(text) for text in given if text.isascii() and text.isdigit() and len(text) <= 18]
    if len(ids) < len(given):
        raise NotFound("A node is given by its number; one of these is no number.")
    return _chosen(dag, steering, nodes.filter(pk__in=ids))


def _chosen(dag: Dag, steering: NodeAction, nodes: QuerySet[Node]) -> SelectedNodes:
    columns = (*_COLUMNS, "features") if steering.decides_gates else _COLUMNS
    rows = list(nodes.only(*columns).order_by("ordinal")[: MAX_NODES + 1])
    judged = [(n, steering.obstacle(dag, state=n.state, kind=n.kind)) for n in rows[:MAX_NODES]]
    return SelectedNodes(
        nodes=[node for node, obstacle in judged if not obstacle],
        left=[(node, obstacle) for node, obstacle in judged if obstacle],
        is_cut=len(rows) > MAX_NODES,
    )


def _version_of(dag: Dag, names: Sequence[str]) -> str:
    rows = Node.objects.filter(dag=dag, name__in=names[:MAX_NODES]).order_by("pk")
    # A gate that waits anew asks anew.
    columns = ("pk", "state", "priority", "max_retries", "variables", "work__waits_since")
    return version_of(list(rows.values_list(*columns)))


def _confirm(
    request: HttpRequest,
    dag: Dag,
    steering: NodeAction,
    chosen: SelectedNodes,
    *,
    error: PilotageError | None = None,
) -> HttpResponse:
    if steering.decides_gates:
        shown = [*chosen.nodes, *(node for node, _ in chosen.left)]
        gates = [(node.name, gate_of(node).who) for node in shown if node.kind == NodeKind.GATE]
        require_decision(Actor.person(request.user), dag, gates or [("", ())])
    ids = [node.pk for node in chosen.nodes]
    event = steering.action.name
    below = count_below(ids) if event in ("rerun", "retry", "mark-failed") else {}
    form = NodeActionForm(steering.action, request.POST or None)
    findings = error.findings[:_NODES_SHOWN] if isinstance(error, InvalidInput) else ()
    context = {
        "dag": dag,
        "steering": steering,
        "nodes": chosen.nodes[:_NODES_SHOWN],
        "seen": _version_of(dag, [node.name for node in chosen.nodes]),
        "names": "\n".join(node.name for node in chosen.nodes),
        "total": len(chosen.nodes),
        "is_cut": chosen.is_cut,
        "left": chosen.left[:_NODES_SHOWN],
        "left_total": len(chosen.left),
        "below_ended": sum(below.get(state, 0) for state in NODE_TERMINAL),
        "below_futile": below.get(NodeState.FUTILE.value, 0),
        "below_waiting": below.get(NodeState.WAITING.value, 0),
        "reopens": dag.state in DAG_TERMINAL and event in ("rerun", "retry"),
        "form": form,
        "with_descendants": request.method != "POST" or "with_descendants" in request.POST,
        "findings": findings,
        "error": error,
    }
    return render_page(request, "steer_nodes", context, status=error.status if error else 200)


def _done(
    request: HttpRequest, dag: Dag, steering: NodeAction, names: Sequence[str], changed: int
) -> HttpResponse:
    add_message = partial(messages.success, request)
    if len(names) > 1 or changed > 1:
        add_message(f"{steering.action.label}: {changed} nodes are changed.")
    else:
        add_message(f"Node {names[0]} {steering.action.done}.")
    if len(names) == 1:
        node = Node.objects.filter(dag=dag, name=names[0]).only("pk").first()
        if node is not None:
            return redirect("web:node", dag_id=dag.pk, node_id=node.pk)
    return redirect(reverse("web:dag", args=[dag.pk]) + "?tab=nodes#tab")

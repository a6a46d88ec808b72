"""The list of DAGs, a DAG's page, and steering it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from portal.filters import DagFilter
from portal.web.downloads import is_picture
from portal.web.forms import ReasonForm, RematchForm
from portal.web.listing import Facet, listing_of
from portal.web.looks import LOOKS
from portal.web.node_steering import node_steerings
from portal.web.pages import page, render_page
from portal.web.paging import stretch_of
from portal.web.runs import around
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted, PilotageError
from wms.core.transitions import Applied
from wms.dags.models import Dag
from wms.dags.policies import matchmaking_policy
from wms.dags.policy import may_steer
from wms.dags.rematching import outlook_of
from wms.dags.selectors import (
    counts_by_state,
    dag_event_lines,
    files_of,
    find_dag,
    levels_of,
    listed_dags,
    matches_of,
    nodes_of,
)
from wms.dags.services import halt_dags, hold_dags, release_dags, rematch_dags, remove_dags
from wms.dags.states import DAG_TERMINAL, DAG_TRANSITIONS, DagState, NodeState

_EVENTS_SHOWN = 100
_FILES_SHOWN = 300
_NODES_SHOWN = 200
_STAYS_SHOWN = 20
#: Up to so many nodes are drawn as marks, level by level.
_NODES_DRAWN = 400


@dataclass(frozen=True, slots=True)
class Steering:
    """Something that a person can do with a DAG."""

    event: str
    label: str
    explanation: str
    done: str
    service: Callable[..., Applied]
    form_class: type[ReasonForm] = ReasonForm

    @property
    def needs_reason(self) -> bool:
        """True when it is refused without a reason."""
        return DAG_TRANSITIONS[self.event].needs_reason

    def is_possible(self, dag: Dag) -> bool:
        """True when the DAG is in a state in which it can be done."""
        if self.event == "rematch" and (dag.site_id is None or dag.parent_node_id is not None):
            return False
        return dag.state in DAG_TRANSITIONS[self.event].sources


STEERINGS = {
    "hold": Steering(
        event="hold",
        label="Hold",
        explanation="What runs may finish; nothing more starts until the DAG is released. Waiting "
        "jobs leave the queues. The DAGs inside of it are held too.",
        done="is held",
        service=hold_dags,
    ),
    "halt": Steering(
        event="halt",
        label="Halt",
        explanation="Nothing more is submitted; queued and running jobs end, and their POST "
        "scripts run. Then the DAG ends with a rescue, unless it is released before.",
        done="is halted",
        service=halt_dags,
    ),
    "release": Steering(
        event="release",
        label="Release",
        explanation="The DAG goes on where it was held or halted.",
        done="is released",
        service=release_dags,
    ),
    "rematch": Steering(
        event="rematch",
        label="Rematch",
        explanation="Takes the DAG from its site. Its queued jobs leave the queues at once, what "
        "is done stays done, and it looks for another site.",
        done="is taken from its site",
        service=rematch_dags,
        form_class=RematchForm,
    ),
    "remove": Steering(
        event="remove",
        label="Remove",
        explanation="Ends the DAG: its jobs are killed, a rescue is written, a FINAL node runs "
        "once more. Removed again, it ends without that. It can be rescued later.",
        done="is removed",
        service=remove_dags,
    ),
}


@require_safe
@page
def dag_list(request: HttpRequest) -> HttpResponse:
    """DAGs by state, owner and name, latest first."""
    listing = listing_of(request, DagFilter, listed_dags(request.user), DagState.values)
    rematch = STEERINGS["rematch"]
    selectable = {
        dag.pk
        for dag in listing.page.rows
        if rematch.is_possible(dag) and may_steer(request.user, dag)
    }
    return render_page(request, "dags", {"listing": listing, "selectable": selectable})


@require_safe
@page
def dag_page(request: HttpRequest, dag_id: int) -> HttpResponse:
    """Everything about one DAG."""
    return _dag_page(request, find_dag(request.user, dag_id))


def _dag_page(
    request: HttpRequest,
    dag: Dag,
    *,
    opened: str = "",
    error: PilotageError | None = None,
) -> HttpResponse:
    wanted = request.GET.get("nodes", "")
    if wanted and wanted not in NodeState.values:
        raise NotFound(f"There is no node state {wanted!r}.")
    nodes = nodes_of(dag).filter(state=wanted) if wanted else nodes_of(dag)
    files = list(files_of(dag).order_by("-modified_at", "path")[: _FILES_SHOWN + 1])
    events = dag_event_lines(dag, limit=_EVENTS_SHOWN + 1)
    levels = levels_of(dag, limit=_NODES_DRAWN)
    counts = counts_by_state(dag)
    facets = _node_facets(counts.every, wanted)
    policy = matchmaking_policy()
    context = {
        "dag": dag,
        "steerings": _steerings(request, dag),
        "may_steer": may_steer(request.user, dag),
        "has_ended": dag.state in DAG_TERMINAL,
        "opened": opened,
        "error": error,
        "steer_form": RematchForm(request.POST or None),
        "avoid_s": policy.avoid_s,
        "outlook": outlook_of(dag, policy, now=timezone.now()),
        "stays": list(matches_of(dag).filter(ended_at__isnull=False)[:_STAYS_SHOWN]),
        "levels": levels,
        "states_drawn": _states_in(levels),
        "wanted": wanted,
        "live_path": _live_path(request, dag),
        "node_facets": facets,
        "nodes_total": sum(facet.count for facet in facets),
        "node_steerings": node_steerings(request.user, dag),
        "counts": counts.counted,
        **around(dag),
        "nodes": stretch_of(nodes, request.GET, by="ordinal", page_size=_NODES_SHOWN),
        "pictures": [file for file in files if file.attempt_id and _is_picture(file)],
        "files": files[:_FILES_SHOWN],
        "files_cut": len(files) > _FILES_SHOWN,
        "events": events[:_EVENTS_SHOWN],
        "events_cut": len(events) > _EVENTS_SHOWN,
    }
    return render_page(request, "dag", context, status=error.status if error else 200)


def _live_path(request: HttpRequest, dag: Dag) -> str:
    """Where the page is refreshed from, also when it answers a refused form."""
    query = request.GET.urlencode()
    return reverse("web:dag", args=[dag.pk]) + (f"?{query}" if query else "")


def _is_picture(file: object) -> bool:
    return is_picture(file.path, file.blob.size_bytes)


def _steerings(request: HttpRequest, dag: Dag) -> list[Steering]:
    if not may_steer(request.user, dag):
        return []
    return [steering for steering in STEERINGS.values() if steering.is_possible(dag)]


def _states_in(levels: list[list[object]]) -> list[str]:
    present = {node.state for level in levels for node in level}
    return [state for state in LOOKS if state in present]


def _node_facets(counts: Mapping[str, int], wanted: str) -> list[Facet]:
    return [
        Facet(state, counts[state], f"?nodes={state}#nodes", state == wanted)
        for state in NodeState.values
        if state in counts
    ]


@require_http_methods(["GET", "HEAD", "POST"])
@page
def steer(request: HttpRequest, dag_id: int, event: str) -> HttpResponse:
    """Hold, halt, release, rematch or remove a DAG; a refusal is shown at the form that was sent.

    Whoever had to log in again comes here by GET, and is led to the form.
    """
    steering = STEERINGS.get(event)
    if steering is None:
        raise Http404
    if request.method != "POST":
        return redirect("web:dag", dag_id=find_dag(request.user, dag_id).pk)
    dag = find_dag(request.user, dag_id)
    try:
        options = steering.form_class(request.POST).options()
        applied = steering.service([dag.pk], actor=Actor.person(request.user), **options)
        if not applied.changed:
            raise Conflict(f"Nothing was done: the DAG is {dag.state}.")
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return _dag_page(request, dag, opened=event, error=error)
    messages.success(request, f"DAG {dag.pk} {steering.done}.")
    return redirect("web:dag", dag_id=dag.pk)

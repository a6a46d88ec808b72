"""DAG page: header with actions and stays at sites, table of tabs, and the open tab.

Other tabs are not queried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from portal.web.dags.reading import DagReading
from portal.web.dags.tabs import (
    counts_of_marks,
    events_tab,
    files_tab,
    overview_tab,
    rescue_tab,
    scripts_tab,
)
from portal.web.dags.timeline import timeline_tab
from portal.web.graph.level_map import levels_tab
from portal.web.graph.tab import graph_tab
from portal.web.nodes.table import nodes_tab
from portal.web.remarks.notes import notes_on
from portal.web.shared.action_forms import Offer, Refused, offers_of
from portal.web.shared.pages import REFRESH_S, is_part, render_page
from portal.web.templatetags.pilotage import span
from wms.actions.dags import DAGS
from wms.core.errors import NotFound
from wms.dags.models import Dag
from wms.dags.policy import may_steer
from wms.dags.reading.accepting_sites import accepting_sites
from wms.dags.reading.gate_selectors import waiting_gates
from wms.dags.reading.input_sets import inputs_of_dag
from wms.dags.reading.run_selectors import outer_dags
from wms.dags.reading.selectors import NodeCounts, matches_of
from wms.dags.states import DAG_TERMINAL
from wms.remarks.states import SubjectKind

_STAYS_SHOWN = 20
_COUNTS_OF_STATES = attrgetter("states.counts")
_REFRESH_OF_LARGE_S = 20


@dataclass(frozen=True, slots=True)
class DagTab:
    """One tab of a DAG's page; `build` makes its template context."""

    name: str
    label: str
    build: Callable[[HttpRequest, DagReading], Mapping[str, Any]]
    #: Counts of nodes by state, from data that the tab reads anyway.
    counts: Callable[[DagReading], NodeCounts] = attrgetter("counts")
    #: Not replaced when the page refreshes: it updates itself.
    is_steady: bool = False
    #: Reads every node.
    is_whole: bool = False


TABS = {
    each.name: each
    for each in (
        DagTab("overview", "Overview", overview_tab, counts=counts_of_marks, is_whole=True),
        DagTab("graph", "Graph", graph_tab, counts=_COUNTS_OF_STATES, is_steady=True),
        DagTab("levels", "Levels", levels_tab, counts=_COUNTS_OF_STATES, is_whole=True),
        DagTab("nodes", "Nodes", nodes_tab, is_whole=True),
        DagTab("timeline", "Timeline", timeline_tab, counts=_COUNTS_OF_STATES, is_whole=True),
        DagTab("events", "Events", events_tab),
        DagTab("scripts", "Scripts", scripts_tab),
        DagTab("files", "Files", files_tab),
        DagTab("rescue", "Rescue", rescue_tab),
    )
}


def show_dag(request: HttpRequest, dag_id: int, *, refused: Refused | None = None) -> HttpResponse:
    """DAG page, or its live part; the form of a refused action is open.

    Raises NotFound.
    """
    tab = _tab(request)
    read = DagReading(request.user, dag_id)
    dag = read.dag
    is_built = not (tab.is_steady and is_part(request))
    counts = tab.counts(read) if is_built else read.counts
    error = refused.error if refused else None
    context = {
        "dag": dag,
        "tab": tab,
        "tabs": TABS.values(),
        "tab_template": f"web/dag_{tab.name}.html",
        "page_path": reverse("web:dag", args=[dag.pk]),
        "live_path": _live_path(request, dag),
        "refresh_s": _REFRESH_OF_LARGE_S if tab.is_whole and read.is_large else REFRESH_S,
        "offers": _offers(request, read, refused),
        "may_steer": may_steer(request.user, dag),
        "has_ended": dag.state in DAG_TERMINAL,
        "error": error,
        "counts": counts.counted,
        "node_total": sum(counts.every.values()),
        "kept_back": read.kept_back,
        "gates": waiting_gates(dag, request.user),
        "outer": outer_dags(dag),
        "is_told": read.is_told,
        "accepting": accepting_sites(dag) or [],
        "inputs": inputs_of_dag(dag),
        "notes": notes_on(SubjectKind.DAG, dag, may_write=may_steer(request.user, dag)),
        **_stays(dag),
    }
    if is_built:
        context |= tab.build(request, read)
    return render_page(request, "dag", context, status=error.status if error else 200)


def _offers(request: HttpRequest, read: DagReading, refused: Refused | None) -> list[Offer]:
    """Forms of the actions that the user may take on the DAG now."""
    dag = read.dag
    return offers_of(
        DAGS.possible_on_page(request.user, dag),
        dag.state,
        lambda name: reverse("web:steer", args=[dag.pk, name]),
        refused=refused,
        defaults={"avoid_min": span(read.policy.avoid_s)},
    )


def _tab(request: HttpRequest) -> DagTab:
    # The list of the nodes in a state was there before there were tabs.
    name = request.GET.get("tab") or ("nodes" if request.GET.get("nodes") else "overview")
    if name not in TABS:
        raise NotFound(f"The page of a DAG has no tab {name!r}.")
    return TABS[name]


def _live_path(request: HttpRequest, dag: Dag) -> str:
    """Address that refreshes the page, also when the page answers a refused form."""
    query = request.GET.urlencode()
    return reverse("web:dag", args=[dag.pk]) + (f"?{query}" if query else "")


def _stays(dag: Dag) -> dict[str, Any]:
    """Stays of the DAG at sites: the present one with its ranks, and earlier ones."""
    stays = list(matches_of(dag)[: _STAYS_SHOWN + 1])
    # Where it ended is where it is shown to be.
    is_there = bool(stays) and (stays[0].ended_at is None or dag.state in DAG_TERMINAL)
    return {"stay": stays[0] if is_there else None, "stays": stays[is_there:][:_STAYS_SHOWN]}

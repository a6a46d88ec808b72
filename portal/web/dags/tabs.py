"""Template contexts of the tabs overview, events, scripts, files and rescue of the DAG page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, QueryDict
from django.utils import timezone

from portal.shared.drawings import drawing_of
from portal.shared.state_badges import BADGES
from portal.web.dags.reading import DagReading
from portal.web.dags.run_facts import facts_of, records_of
from portal.web.graph.level_map import level_map
from portal.web.lists.paging import page_of
from portal.web.shared.downloads import is_picture
from wms.campaigns.selectors import forecast_of_dag
from wms.dags.negotiation.rematch import rematch_forecast
from wms.dags.reading.node_selectors import script_runs_of_dag
from wms.dags.reading.run_selectors import rescues_of, resume_points_of
from wms.dags.reading.selectors import (
    DagEventLine,
    EventsBefore,
    NodeCounts,
    dag_event_lines,
    files_of,
)
from wms.dags.states import NodeState
from wms.failures.selectors import causes_in_dag, first_failures

_EVENTS_SHOWN = 100
_LATEST_EVENTS = 10
_FILES_SHOWN = 300
_PICTURES_SHOWN = 12
_CAUSES_SHOWN = 5
_SCRIPTS_SHOWN = 100


def counts_of_marks(read: DagReading) -> NodeCounts:
    """Number of nodes by state, from the marks that the overview shows."""
    return read.states.counts if read.levels is None else read.levels.counts


def overview_tab(request: HttpRequest, read: DagReading) -> Mapping[str, Any]:
    """Overview: facts, limits, inner DAGs, pictures and latest events."""
    dag, levels, now = read.dag, read.levels, timezone.now()
    present = {node.state for level in levels.rows for node in level} if levels else ()
    events = dag_event_lines(dag, limit=_LATEST_EVENTS)
    newest = files_of(dag).filter(attempt__isnull=False).order_by("-modified_at", "path")
    return {
        "levels": levels.rows if levels else (),
        "map": None if levels else level_map(drawing_of(dag), read.states.codes),
        "states_drawn": [state for state in BADGES if state in present],
        "causes": causes_in_dag(dag.pk, limit=_CAUSES_SHOWN),
        "first_failure": first_failures([dag.pk]).get(dag.pk),
        "forecast": forecast_of_dag(dag, now=now),
        "outlook": rematch_forecast(dag, read.policy, now=now),
        "pictures": _pictures(newest[:_FILES_SHOWN]),
        "events": events,
        **facts_of(dag, request.user, read.limits),
    }


def _pictures(files: Any) -> list[Any]:
    shown = [file for file in files if is_picture(file.path, file.blob.size_bytes)]
    return shown[:_PICTURES_SHOWN]


def events_tab(request: HttpRequest, read: DagReading) -> Mapping[str, Any]:
    """Events of the DAG and its nodes, latest first, in pages."""
    before = EventsBefore(_number(request.GET, "dag"), _number(request.GET, "node"))
    events = dag_event_lines(read.dag, limit=_EVENTS_SHOWN + 1, before=before)
    shown = events[:_EVENTS_SHOWN]
    return {
        "events": shown,
        "is_first": before == EventsBefore(),
        "older": _older(shown, before) if len(events) > _EVENTS_SHOWN else "",
    }


def _older(shown: list[DagEventLine], before: EventsBefore) -> str:
    """Address of the next page: before the lowest shown ids of both kinds of events."""
    query = QueryDict(mutable=True)
    query["tab"] = "events"
    lowest = {
        "dag": min((each.pk for each in shown if not each.subject), default=before.dag_event),
        "node": min((each.pk for each in shown if each.subject), default=before.node_event),
    }
    for name, pk in lowest.items():
        if pk is not None:
            query[name] = str(pk)
    return f"?{query.urlencode()}"


def _number(query: QueryDict, name: str) -> int | None:
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def scripts_tab(request: HttpRequest, read: DagReading) -> Mapping[str, Any]:
    """Script runs of all nodes, latest first."""
    return {
        "scripts": page_of(script_runs_of_dag(read.dag), request.GET, page_size=_SCRIPTS_SHOWN),
    }


def files_tab(request: HttpRequest, read: DagReading) -> Mapping[str, Any]:
    """Submitted and returned files, latest first; a part of the name narrows it."""
    wanted = request.GET.get("q", "").strip()
    files = files_of(read.dag).order_by("-modified_at", "path")
    if wanted:
        files = files.filter(path__icontains=wanted)
    found = list(files[: _FILES_SHOWN + 1])
    return {
        "q": wanted,
        "files": found[:_FILES_SHOWN],
        "files_cut": len(found) > _FILES_SHOWN,
        "pictures": _pictures(file for file in found if file.attempt_id),
    }


def rescue_tab(request: HttpRequest, read: DagReading) -> Mapping[str, Any]:
    """Starting points of a further run, and the nodes that this run left undone."""
    counts, written = read.counts.counted, list(rescues_of(read.dag))
    left = {state: n for state, n in counts.items() if state != NodeState.DONE and n}
    return {
        "starts": resume_points_of(read.dag, written),
        "left": left,
        "left_total": sum(left.values()),
        **records_of(read.dag, written),
    }

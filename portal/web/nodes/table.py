"""Nodes tab of the DAG page: table of nodes with counts by state and paging, for any number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, QueryDict

from portal.web.dags.reading import DagReading
from portal.web.lists.paging import NumberedPage, numbered_page_of
from portal.web.nodes.selection import SHOWS, NodeSelection, chosen_rows, search_nodes, selection_of
from wms.actions.nodes import actions_on_nodes
from wms.dags.models import Dag, Node
from wms.dags.reading.selectors import nodes_of
from wms.dags.states import NodeState

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class NodeFacet:
    """A node state, the number of nodes in it, and the link to only those."""

    state: str
    count: int
    query: str
    is_chosen: bool


def nodes_tab(request: HttpRequest, read: DagReading) -> Mapping[str, Any]:
    """Context of the nodes tab: the selected nodes, in pages."""
    dag, counts = read.dag, read.counts
    query = request.GET.copy()
    query["tab"] = "nodes"
    choice = selection_of(query)
    notes: Mapping[int, str] = {}
    remark = ""
    if choice.is_searched:
        found = search_nodes(dag, read.states, choice)
        notes, remark = found.notes, found.remark
        nodes = _page_of_ids(dag, found.ids, query)
    else:
        nodes = numbered_page_of(
            chosen_rows(nodes_of(dag), choice), query, by="ordinal", page_size=_SHOWN
        )
    return {
        "choice": choice,
        "nodes": nodes,
        "lines": [(node, notes.get(node.pk, "")) for node in nodes.rows],
        "remark": remark,
        "node_facets": _facets(counts.every, query, choice),
        "nodes_total": sum(counts.every.values()),
        "all_states": _changed(query, nodes=""),
        "shows": _shows(query, choice),
        "node_steerings": actions_on_nodes(request.user, dag),
    }


def _page_of_ids(dag: Dag, ids: Sequence[int], query: QueryDict) -> NumberedPage[Node]:
    """Page of nodes in a given order; `from` counts from 0. One query."""
    text = query.get("from", "")
    start = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    wanted = ids[start : start + _SHOWN]
    rows = nodes_of(dag).in_bulk(wanted)
    following = str(start + _SHOWN) if start + _SHOWN < len(ids) else ""
    return NumberedPage(
        rows=[rows[pk] for pk in wanted if pk in rows],
        first=_changed(query) if start else "",
        following=_changed(query, **{"from": following}) if following else "",
    )


def _facets(counts: Mapping[str, int], query: QueryDict, choice: NodeSelection) -> list[NodeFacet]:
    return [
        NodeFacet(state, counts[state], _changed(query, nodes=state), state == choice.state)
        for state in NodeState.values
        if state in counts
    ]


def _shows(query: QueryDict, choice: NodeSelection) -> list[tuple[str, str, str, bool]]:
    """Selections offered above the table: name, label, address, whether chosen."""
    return [
        (name, words, _changed(query, show=name, level="", q="", nodes=""), name == choice.show)
        for name, words in SHOWS.items()
    ]


def _changed(query: QueryDict, **values: str) -> str:
    changed = query.copy()
    for name, value in {"from": "", **values}.items():
        if value:
            changed[name] = value
        else:
            changed.pop(name, None)
    return f"?{changed.urlencode()}"

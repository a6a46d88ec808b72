"""Views that send the graph of a large DAG to the browser: positions, states and names, in binary.

Also changes of states since a version, and facts of one node as JSON.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

from portal.shared.drawings import columns_of, drawing_of, states_of
from portal.web.graph.scene import needs_of
from portal.web.shared.pages import page
from wms.core.errors import InvalidInput, NotFound
from wms.dags.joins.selectors import conditions_of, join_of
from wms.dags.models import Node
from wms.dags.reading.drawing import FORMAT, Drawing
from wms.dags.reading.drawing_analysis import neighbours_of
from wms.dags.reading.drawing_states import changes_since, read_version
from wms.dags.reading.selectors import find_dag

_BINARY = "application/octet-stream"
#: Most names, and most neighbours, in one answer.
_MOST_NAMES = 400
_MOST_NEIGHBOURS = 400
#: Conditions of a node that are told, and characters of each.
_CONDITIONS_TOLD, _LONGEST_CONDITION = 3, 200


@require_safe
@page
def places(request: HttpRequest, dag_id: int) -> HttpResponse:
    """Positions of all nodes: see docs/reference/graph-data.md. They change when it grows."""
    dag = find_dag(request.user, dag_id)
    etag = f'"{FORMAT}-{dag.pk}-{dag.created_at.timestamp()}-{dag.node_count}"'
    unchanged = get_conditional_response(request, etag=etag)
    if unchanged is not None:
        return unchanged
    response = _binary(request, columns_of(dag))
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    return response


@require_safe
@page
def states(request: HttpRequest, dag_id: int) -> HttpResponse:
    """One byte for the state of each node; the header X-Graph-Version has the version."""
    dag = find_dag(request.user, dag_id)
    known = states_of(dag)
    response = _binary(request, gzip.compress(known.codes, 6, mtime=0))
    response["X-Graph-Version"] = str(known.version)
    return response


def _binary(request: HttpRequest, compressed: bytes) -> HttpResponse:
    """Compressed content, or plain content for clients that do not accept that."""
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return HttpResponse(gzip.decompress(compressed), content_type=_BINARY)
    response = HttpResponse(compressed, content_type=_BINARY)
    response["Content-Encoding"] = "gzip"
    response["Vary"] = "Accept-Encoding"
    return response


@require_safe
@page
def changes(request: HttpRequest, dag_id: int) -> JsonResponse:
    """Numbers of the nodes that changed since a version, by state.

    `nodes` is null when there are too many: then the client reads all states again.
    """
    dag = find_dag(request.user, dag_id)
    known = read_version(request.GET.get("since", ""))
    if known is None:
        raise InvalidInput.of("give a version that an earlier answer named", field="since")
    found = changes_since(dag, drawing_of(dag), known)
    by_state: dict[int, list[int]] = defaultdict(list)
    for node, code in (found.codes or {}).items():
        by_state[code].append(node)
    nodes = None if found.codes is None else by_state
    return JsonResponse({"version": str(found.version), "nodes": nodes})


@require_safe
@page
def names(request: HttpRequest, dag_id: int) -> JsonResponse:
    """Names of nodes by their numbers: `at` has these, separated by commas."""
    dag = find_dag(request.user, dag_id)
    drawing = drawing_of(dag)
    given = request.GET.get("at", "").split(",")[:_MOST_NAMES]
    numbers = [int(n) for n in given if n.isascii() and n.isdigit() and len(n) < 10]
    ids = [drawing.id_of(n) for n in numbers if n < drawing.node_count]
    rows = Node.objects.filter(dag=dag, pk__in=ids).values_list("pk", "name")
    return JsonResponse({"names": {drawing.index_of(pk): name for pk, name in rows}})


@require_safe
@page
def node(request: HttpRequest, dag_id: int, index: int) -> JsonResponse:
    """One node of the drawing: facts, reasons, and the numbers of its neighbours."""
    dag = find_dag(request.user, dag_id)
    drawing = drawing_of(dag)
    row = None
    if index < drawing.node_count:
        found = Node.objects.filter(dag=dag, pk=drawing.id_of(index))
        row = found.only("name", "state", "state_reason", "kind").first()
    if row is None:
        raise NotFound(f"The drawing of DAG {dag_id} has no node {index}.")
    row.dag = dag
    near = neighbours_of(drawing, index, depth=1, limit=_MOST_NEIGHBOURS)
    there = set(near.nodes)
    arcs = zip(drawing.parents, drawing.children, strict=True)
    answer: dict[str, Any] = {
        "id": row.pk,
        "name": row.name,
        "kind": row.kind,
        "state": row.state,
        "reason": row.state_reason[:300],
        "level": drawing.levels[index] + 1,
        "href": reverse("web:node", args=[dag.pk, row.pk]),
        "near_href": f"{reverse('web:dag', args=[dag.pk])}?tab=graph&node={row.pk}#graph",
        "parents": [p for p, c in arcs if c == index and p in there],
        "children": [
            c
            for p, c in zip(drawing.parents, drawing.children, strict=True)
            if p == index and c in there
        ],
        "is_cut": near.is_cut,
        **_decisions(row, drawing),
    }
    return JsonResponse(answer)


def _decisions(row: Node, drawing: Drawing) -> dict[str, Any]:
    """Join of a node in words, and the numbers of those at the other ends of its conditions."""
    before, after = conditions_of(row)
    join = join_of(row)
    return {
        "join": needs_of(join.needed_count, join.arc_count) if join else "",
        "conditional": [drawing.index_of(arc.node_id) for arc in (*before, *after)],
        "conditions": [
            f"{arc.name}: {arc.reason or f'when {arc.expression}'}"[:_LONGEST_CONDITION]
            for arc in (*before, *after)[:_CONDITIONS_TOLD]
        ],
    }

"""Graph tab of the DAG page: drawn whole, folded, or as a map of cells, depending on its size.

Also the part of a DAG around one node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, QueryDict
from django.urls import reverse

from portal.shared.drawings import drawing_of
from portal.shared.state_badges import WORDS, badge_of
from portal.web.dags.reading import DagReading
from portal.web.graph.folding import Element, NodeFact, folded, folds_of
from portal.web.graph.level_map import level_map
from portal.web.graph.scene import BoxAddresses, Scene, scene_of
from portal.web.graph.state_bars import STACKED_CODES
from wms.core.errors import NotFound
from wms.dags.joins.selectors import DrawnCondition, conditions_by_arc, partial_joins
from wms.dags.models import Dag, Node
from wms.dags.reading.drawing import Drawing
from wms.dags.reading.drawing_analysis import neighbours_of
from wms.dags.reading.drawing_states import DRAWN
from wms.dags.states import NodeKind

#: Nodes and arcs up to which a DAG is drawn whole, and folded.
WHOLE = (300, 900)
FOLDED = (5_000, 20_000)
#: Most boxes that are drawn around one node.
_NEIGHBOURS = 250
_DEPTHS = (1, 2, 3, 4, 6)
_DEFAULT_DEPTH = 2
_FOUND = 12


@dataclass(frozen=True, slots=True)
class GraphQuery:
    """Query parameters of the graph tab."""

    node: Node | None
    found: Sequence[Node]
    text: str
    depth: int
    fold: str
    opened: Sequence[str]


def size_of(drawing: Drawing) -> str:
    """Way to draw a DAG of this size: whole, folded or map; arcs count like nodes."""
    for name, (nodes, arcs) in (("whole", WHOLE), ("folded", FOLDED)):
        if drawing.node_count <= nodes and drawing.arc_count <= arcs:
            return name
    return "map"


def graph_tab(request: HttpRequest, read: DagReading) -> Mapping[str, Any]:
    """Context of the graph tab: the drawing, and the links to other drawings of the DAG."""
    dag, states = read.dag, read.states
    drawing = drawing_of(dag)
    graph_query = _graph_query(request.GET, dag)
    size = size_of(drawing)
    query = request.GET.copy()
    context: dict[str, Any] = {
        "graph_query": graph_query,
        "size": size,
        "version": str(states.version),
        "drawing": drawing,
        "depths": [(depth, _way(query, depth=depth)) for depth in _DEPTHS],
        "no_node": _way(query, node="", q="", depth=""),
        "look_list": [
            {
                "state": s,
                "word": WORDS.get(s, s),
                "tone": badge_of(s).tone,
                "shape": badge_of(s).shape,
            }
            for s in DRAWN
        ],
        "stacked": STACKED_CODES,
    }
    if graph_query.node is not None and not (size == "whole" and graph_query.text):
        return context | _around(dag, drawing, states.codes, graph_query)
    if size == "map":
        return context | {"map": level_map(drawing, states.codes)}
    facts = _facts(dag, drawing)
    if size == "whole":
        return context | {"scene": _whole(dag, drawing, states.codes, facts, graph_query)}
    return context | _folded(dag, drawing, states.codes, facts, graph_query, query)


def _graph_query(query: QueryDict, dag: Dag) -> GraphQuery:
    text = query.get("q", "").strip()
    nodes = Node.objects.filter(dag=dag).only("name", "ordinal", "state")
    found: list[Node] = []
    node = None
    if text:
        exact = list(nodes.filter(name=text))
        found = exact or list(nodes.filter(name__icontains=text).order_by("ordinal")[: _FOUND + 1])
        node = found[0] if found else None
    elif query.get("node"):
        node = nodes.filter(pk=_number(query, "node", 0)).first()
        if node is None:
            raise NotFound("This DAG has no such node.")
    return GraphQuery(
        node=node,
        found=found,
        text=text,
        depth=min(max(_number(query, "depth", _DEFAULT_DEPTH), 1), _DEPTHS[-1]),
        fold=query.get("fold", ""),
        opened=query.getlist("open")[:50],
    )


def _number(query: QueryDict, name: str, default: int) -> int:
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else default


def _way(query: QueryDict, **values: Any) -> str:
    changed = query.copy()
    for name, value in values.items():
        if value == "":
            changed.pop(name, None)
        else:
            changed[name] = str(value)
    return f"?{changed.urlencode()}#graph"


def _facts(dag: Dag, drawing: Drawing, only: Sequence[int] | None = None) -> dict[int, NodeFact]:
    """Data of nodes for their boxes, by number in the drawing; one query, and one for joins."""
    joins = {pk: (join.needed_count, join.arc_count) for pk, join in partial_joins(dag).items()}
    rows = Node.objects.filter(dag=dag)
    if only is not None:
        rows = rows.filter(pk__in=[drawing.id_of(node) for node in only])
    facts = {}
    columns = ("pk", "name", "kind", "work__inner_dag")
    for pk, name, kind, inner in rows.order_by("pk").values_list(*columns):
        index = drawing.index_of(pk)
        if index is not None:
            facts[index] = NodeFact(pk, name, kind, inner, joins.get(pk))
    return facts


def _final(facts: Mapping[int, NodeFact]) -> list[int]:
    return [index for index, fact in facts.items() if fact.kind == NodeKind.FINAL]


def _arcs(drawing: Drawing) -> zip[tuple[int, int]]:
    return zip(drawing.parents, drawing.children, strict=True)


def _conditions(dag: Dag, drawing: Drawing) -> dict[tuple[int, int], DrawnCondition]:
    """Conditions of arcs, by the numbers of their ends."""
    found = {}
    for (parent, child), condition in conditions_by_arc(dag).items():
        above, below = drawing.index_of(parent), drawing.index_of(child)
        if above is not None and below is not None:
            found[above, below] = condition
    return found


def _box_addresses(dag: Dag, query: QueryDict | None = None) -> BoxAddresses:
    page = reverse("web:dag", args=[dag.pk])

    def group(element: Element) -> str:
        opened = QueryDict(mutable=True) if query is None else query.copy()
        if element.is_rest:
            return f"{page}?tab=nodes"
        opened.appendlist("open", element.key)
        return f"{page}?{opened.urlencode()}#graph"

    return BoxAddresses(node=lambda pk: reverse("web:node", args=[dag.pk, pk]), group=group)


def _whole(
    dag: Dag, drawing: Drawing, codes: bytes, facts: dict[int, NodeFact], graph_query: GraphQuery
) -> Scene:
    found = [
        index for node in graph_query.found if (index := drawing.index_of(node.pk)) is not None
    ]
    elements = [Element([node]) for node in range(drawing.node_count)]
    return scene_of(
        elements,
        _arcs(drawing),
        facts,
        codes,
        _box_addresses(dag),
        found=found,
        last=_final(facts),
        conditions=_conditions(dag, drawing),
    )


def _folded(
    dag: Dag,
    drawing: Drawing,
    codes: bytes,
    facts: dict[int, NodeFact],
    graph_query: GraphQuery,
    query: QueryDict,
) -> dict[str, Any]:
    folds = folds_of(drawing, [facts[node] for node in range(drawing.node_count)])
    fold = folds.get(graph_query.fold, next(iter(folds.values())))
    elements = folded(drawing, fold, opened=graph_query.opened)
    collapsed = []
    for key in graph_query.opened:
        rest = query.copy()
        rest.setlist("open", [other for other in graph_query.opened if other != key])
        collapsed.append((key, f"?{rest.urlencode()}#graph"))
    return {
        "fold": fold,
        "folds": [(each, _way(query, fold=each.name, open="")) for each in folds.values()],
        "collapsed": collapsed,
        "scene": scene_of(
            elements,
            _arcs(drawing),
            facts,
            codes,
            _box_addresses(dag, query),
            last=_final(facts),
            conditions=_conditions(dag, drawing),
        ),
    }


def _around(dag: Dag, drawing: Drawing, codes: bytes, graph_query: GraphQuery) -> dict[str, Any]:
    """Neighbourhood of one node."""
    center = drawing.index_of(graph_query.node.pk) if graph_query.node else None
    if center is None:
        raise NotFound("This DAG has no such node.")
    near = neighbours_of(drawing, center, depth=graph_query.depth, limit=_NEIGHBOURS)
    facts = _facts(dag, drawing, near.nodes)
    scene = scene_of(
        [Element([node]) for node in sorted(near.nodes) if node in facts],
        _arcs(drawing),
        facts,
        codes,
        _box_addresses(dag),
        found=[center],
        last=_final(facts),
        conditions=_conditions(dag, drawing),
    )
    return {"scene": scene, "is_near": True, "is_cut": near.is_cut, "most": _NEIGHBOURS}

"""Export of a DAG's graph as DOT for Graphviz, with the states of its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from wms.dags.exports.status import c_time
from wms.dags.joins.selectors import DrawnCondition, conditions_by_arc, partial_joins
from wms.dags.models import Dag, Edge, Join, Node
from wms.dags.states import NodeKind, NodeState

_WAITS = ("ellipse", "I", "")
#: Drawing of a node by kind: its shape, the letters behind its name, and further attributes.
_LOOKS = {
    NodeState.PRE_RUNNING.value: ("ellipse", "Pre", " style=dotted"),
    NodeState.SUBMITTED.value: ("ellipse", "R", " peripheries=2"),
    NodeState.POST_RUNNING.value: ("ellipse", "Post", " style=dotted"),
    NodeState.DONE.value: ("ellipse", "Done", " style=bold"),
    NodeState.FAILED.value: ("box", "E", ""),
    NodeState.SKIPPED.value: ("ellipse", "Skipped", " style=dashed"),
}
_CHUNK = 2000


#: What came of the condition of an arc: its line, as on the page of the DAG.
_CONDITIONS = {
    None: "style=dashed",
    True: "style=solid color=darkgreen",
    False: "style=dotted",
}
#: Letters of an expression that stand beside its arc; the whole of it is the tooltip.
_LETTERS = 40
_LEGEND = (
    "An expression beside an arc: a condition, dashed until it is decided, green once it holds, "
    "dotted once it does not. "
    "Needs: so many of the arcs of a node have to hold. Six corners: a gate."
)


def lines(dag: Dag, now: datetime) -> Iterator[str]:
    """Text of the file. Weak arcs are dashed; conditions, joins and gates are told in a legend."""
    conditions, joins = conditions_by_arc(dag), partial_joins(dag)
    nodes = Node.objects.filter(dag=dag).exclude(kind=NodeKind.SERVICE).order_by("ordinal")
    has_more = bool(conditions or joins) or nodes.filter(kind=NodeKind.GATE).exists()
    legend = f"\\n{_LEGEND}" if has_more else ""
    yield f'digraph DAG {{\n    label="DAGMan Job status at {c_time(now)}{legend}";\n\n'
    columns = ("name", "state", "kind", "pk")
    for name, state, kind, pk in nodes.values_list(*columns).iterator(chunk_size=_CHUNK):
        yield _node(name, state, kind, joins.get(pk))
    yield "\n"
    arcs = (
        Edge.objects.filter(parent__dag=dag)
        .order_by("parent__ordinal", "child__ordinal")
        .values_list("parent__name", "child__name", "is_weak", "parent_id", "child_id")
    )
    for parent, child, is_weak, *ends in arcs.iterator(chunk_size=_CHUNK):
        look = _look(is_weak, conditions.get((ends[0], ends[1])))
        yield f'    "{_escaped(parent)}" -> "{_escaped(child)}"{look};\n'
    yield "}\n"


def _node(name: str, state: str, kind: str, join: Join | None) -> str:
    shape, letters, more = _LOOKS.get(state, _WAITS)
    quoted = _escaped(name)
    needs = "" if join is None else f"\\n{_needs(join)}"
    shape = "hexagon" if kind == NodeKind.GATE else shape
    return f'    "{quoted}" [shape={shape} label="{quoted} ({letters}){needs}"{more}];\n'


def _needs(join: Join) -> str:
    needed = "any" if join.needed_count == 1 else join.needed_count
    return f"needs {needed} of {join.arc_count}"


def _look(is_weak: bool, condition: DrawnCondition | None) -> str:
    if condition is None:
        return " [style=dashed]" if is_weak else ""
    whole = condition.expression
    label = whole if len(whole) <= _LETTERS else f"{whole[: _LETTERS - 1]}…"
    told = _escaped(condition.reason or whole)
    return (
        f' [{_CONDITIONS[condition.holds]} label="{_escaped(label)}" '
        f'tooltip="{told}" labeltooltip="{told}"]'
    )


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')

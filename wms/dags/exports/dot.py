"""Export of a DAG's graph as DOT for Graphviz, with the states of its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from wms.dags.exports.status import c_time
from wms.dags.joins.selectors import conditions_by_arc
from wms.dags.models import Dag, Edge, Node
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


def lines(dag: Dag, now: datetime) -> Iterator[str]:
    """Text of the file. Weak arcs are dashed, and so are those with a condition, which is told."""
    yield f'digraph DAG {{\n    label="DAGMan Job status at {c_time(now)}";\n\n'
    nodes = Node.objects.filter(dag=dag).exclude(kind=NodeKind.SERVICE).order_by("ordinal")
    for name, state in nodes.values_list("name", "state").iterator(chunk_size=_CHUNK):
        shape, letters, more = _LOOKS.get(state, _WAITS)
        quoted = _escaped(name)
        yield f'    "{quoted}" [shape={shape} label="{quoted} ({letters})"{more}];\n'
    yield "\n"
    arcs = (
        Edge.objects.filter(parent__dag=dag)
        .order_by("parent__ordinal", "child__ordinal")
        .values_list("parent__name", "child__name", "is_weak", "parent_id", "child_id")
    )
    conditions = conditions_by_arc(dag)
    for parent, child, is_weak, *ends in arcs.iterator(chunk_size=_CHUNK):
        condition = conditions.get((ends[0], ends[1]))
        look = " [style=dashed]" if is_weak else ""
        if condition is not None:
            look = f' [style=dashed label="{_escaped(condition.expression)}"]'
        yield f'    "{_escaped(parent)}" -> "{_escaped(child)}"{look};\n'
    yield "}\n"


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')

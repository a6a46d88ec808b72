"""Analysis of a DAG by its drawing: node times, critical path, blocking nodes, neighbours.

The times of nodes that have not ended are estimates. Blocking nodes are those on which most undone
nodes depend.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import connection

from wms.dags.models import Dag
from wms.dags.reading.drawing import Drawing
from wms.dags.reading.drawing_states import DRAWN
from wms.dags.reading.sql import READ_NODE_TIMES
from wms.dags.states import NODE_TERMINAL, NodeState

_DONE = DRAWN.index(NodeState.DONE.value)
_WAITING = DRAWN.index(NodeState.WAITING.value)
_FUTILE = DRAWN.index(NodeState.FUTILE.value)
_SKIPPED = DRAWN.index(NodeState.SKIPPED.value)
#: Limit of undone nodes that are counted exactly; with more, a sample is.
_MAX_COUNTED = 5_000
_SAMPLE = 1_000
_ENDED = frozenset(DRAWN.index(state) for state in NODE_TERMINAL)


def times_of_nodes(dag: Dag) -> array[float]:
    """Times in seconds of the epoch since which the nodes of a DAG are in their states."""
    with connection.cursor() as cursor:
        cursor.execute(READ_NODE_TIMES, [dag.pk])
        times = array("d", bytes(cursor.fetchone()[0] or b""))
    times.byteswap()
    return times


@dataclass(frozen=True, slots=True)
class NodeTimes:
    """Start and end times of nodes; future times are estimates.

    A node starts with the end of its last parent. `mean_s` is the mean duration of done nodes.
    """

    starts: Sequence[float]
    ends: Sequence[float]
    mean_s: float
    #: Parent that ended last; -1 for none.
    last_parent: Sequence[int]


def estimate_node_times(
    drawing: Drawing, codes: bytes, times: Sequence[float], *, begun: float, now: float
) -> NodeTimes:
    """Times of all nodes; a node that has not ended takes the mean duration of done ones.

    Linear in nodes and arcs.
    """
    by_level, first_arc = drawing.by_level, drawing.first_arcs
    known = _last_parent_ends(drawing, codes, times, begun)
    spans = [times[n] - known[n] for n in by_level if codes[n] == _DONE and times[n] > known[n]]
    mean_s = sum(spans) / len(spans) if spans else 1.0
    starts, last = [begun] * drawing.node_count, array("q", [-1]) * drawing.node_count
    ends = [0.0] * drawing.node_count
    for node in by_level:
        end = times[node] if codes[node] in _ENDED else max(starts[node] + mean_s, now)
        ends[node] = end
        # A node may have ended before a parent that ran again.
        starts[node] = min(starts[node], end)
        for child in drawing.children[first_arc[node] : first_arc[node + 1]]:
            if end >= starts[child] or last[child] < 0:
                starts[child], last[child] = max(end, starts[child]), node
    return NodeTimes(starts, ends, mean_s, last)


def _last_parent_ends(
    drawing: Drawing, codes: bytes, times: Sequence[float], begun: float
) -> Sequence[float]:
    """End of the last ended parent of each node."""
    started = array("d", [begun]) * drawing.node_count
    for parent, child in zip(drawing.parents, drawing.children, strict=True):
        if codes[parent] in _ENDED and times[parent] > started[child]:
            started[child] = times[parent]
    return started


def longest_path(ends: NodeTimes) -> list[int]:
    """Critical path: the chain of nodes that determines the end of the DAG."""
    if not ends.ends:
        return []
    node = max(range(len(ends.ends)), key=ends.ends.__getitem__)
    path = [node]
    while ends.last_parent[node] >= 0:
        node = ends.last_parent[node]
        path.append(node)
    return path[::-1]


@dataclass(frozen=True, slots=True)
class BlockingNodes:
    """Nodes and the numbers of undone nodes that depend on them, largest first."""

    nodes: Sequence[tuple[int, int]]
    #: False if the numbers are estimated from a sample.
    is_exact: bool


def most_blocking_nodes(drawing: Drawing, codes: bytes) -> BlockingNodes:
    """Failed, ready or running nodes on which most undone nodes depend.

    Linear in arcs: each node passes a bit set to its parents, with a bit for each dependent node of
    a sample; in small DAGs the sample is all nodes.
    """
    undone = [node for node, code in enumerate(codes) if code not in (_DONE, _SKIPPED)]
    step = 1 if len(undone) <= _MAX_COUNTED else len(undone) / _SAMPLE
    sample = undone if step == 1 else [undone[int(k * step)] for k in range(_SAMPLE)]
    below = [0] * drawing.node_count
    own = {node: 1 << bit for bit, node in enumerate(sample)}
    for node, bit in own.items():
        below[node] = bit
    levels, parents, children = drawing.levels, drawing.parents, drawing.children
    for arc in sorted(range(len(parents)), key=lambda arc: -levels[parents[arc]]):
        below[parents[arc]] |= below[children[arc]]
    counted = []
    for node, code in enumerate(codes):
        count = (below[node] & ~own.get(node, 0)).bit_count()
        if count and code not in (_DONE, _WAITING, _FUTILE, _SKIPPED):
            counted.append((node, round(count * step)))
    counted.sort(key=lambda each: (-each[1], each[0]))
    return BlockingNodes(counted, is_exact=step == 1)


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Nodes within some steps of a node; `is_cut` when the limit was reached."""

    nodes: Sequence[int]
    is_cut: bool


def neighbours_of(drawing: Drawing, node: int, *, depth: int, limit: int) -> Neighbourhood:
    """Ancestors and descendants of a node within `depth` steps, the nearest first."""
    neighbours, is_cut = {node: None}, False
    for ends in ((drawing.children, drawing.parents), (drawing.parents, drawing.children)):
        frontier: Collection[int] = {node}
        for _ in range(depth):
            near = {
                there for here, there in zip(*ends, strict=True) if here in frontier
            } - neighbours.keys()
            is_cut = is_cut or len(neighbours) + len(near) > limit
            frontier = sorted(near)[: max(limit - len(neighbours), 0)]
            neighbours |= dict.fromkeys(frontier)
            frontier = set(frontier)
    return Neighbourhood(list(neighbours), is_cut)

"""Shape of a DAG's graph: its statistics (height, width at each depth), and a cycle if any.

Also the graph itself, for rustworkx.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

import rustworkx

from wms.dags.language.spec import Arcs, DagSpec, Statistics

_Graph = rustworkx.PyDiGraph[None, None]
#: Arcs are handed over in pieces, so that no list of all of them is made.
_PIECE = 100_000


def graph_statistics(spec: DagSpec, special_count: int) -> Statistics:
    """Statistics of a DAG; one with a cycle has neither height nor width.

    `special_count` nodes, such as FINAL, are not in the graph and do not count.
    """
    statistics = Statistics(nodes=len(spec.nodes) - special_count, arcs=len(spec.arcs))
    graph = graph_of(len(spec.nodes), spec.arcs)
    try:
        widths = [len(generation) for generation in rustworkx.topological_generations(graph)]
    except rustworkx.DAGHasCycle:
        names = list(spec.nodes)
        statistics.cycle = [names[at] for at in find_cycle(graph)]
        return statistics
    if special_count:
        # They have no arcs, so they were counted among the first.
        widths[0] -= special_count
    statistics.widths = [width for width in widths if width]
    statistics.height = len(statistics.widths)
    statistics.width = max(statistics.widths, default=0)
    return statistics


def graph_of(node_count: int, arcs: Arcs) -> _Graph:
    """Graph of a DAG; its nodes are positions."""
    graph: _Graph = rustworkx.PyDiGraph(multigraph=True)
    graph.add_nodes_from([None] * node_count)
    pairs = zip(arcs.parents, arcs.children, strict=True)
    while piece := list(islice(pairs, _PIECE)):
        graph.add_edges_from_no_data(piece)
    return graph


def find_cycle(graph: _Graph) -> list[int]:
    """Nodes along a cycle, first and last being the same; empty when there is none.

    It begins with the first node that is on a cycle, and is the shortest one through it.
    """
    on_cycles = [
        min(component)
        for component in rustworkx.strongly_connected_components(graph)
        if len(component) > 1 or graph.has_edge(component[0], component[0])
    ]
    return _shortest_cycle_through(graph, min(on_cycles)) if on_cycles else []


def _shortest_cycle_through(graph: _Graph, first: int) -> list[int]:
    """Shortest path from a node to itself; there must be one."""
    reached_from: dict[int, int] = {}
    queue = deque([first])
    while first not in reached_from:
        node = queue.popleft()
        for child in graph.successor_indices(node):
            if child not in reached_from:
                reached_from[child] = node
                queue.append(child)
    path = [first, reached_from[first]]
    while path[-1] != first:
        path.append(reached_from[path[-1]])
    return path[::-1]

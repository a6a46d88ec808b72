"""The shape of a DAG: cycles."""

from __future__ import annotations

from collections.abc import Iterable

import rustworkx


def find_cycle(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[str]:
    """The names along one cycle, first and last being the same; empty when there is none.

    The cycle begins with the node that comes first in `nodes`.
    """
    names = list(nodes)
    index = {name: place for place, name in enumerate(names)}
    graph = rustworkx.PyDiGraph(multigraph=False)
    graph.add_nodes_from(names)
    graph.add_edges_from_no_data([(index[parent], index[child]) for parent, child in edges])
    if rustworkx.is_directed_acyclic_graph(graph):
        return []
    for component in rustworkx.strongly_connected_components(graph):
        first = min(component)
        if len(component) > 1 or graph.has_edge(first, first):
            arcs = rustworkx.digraph_find_cycle(graph, source=first)
            path = [names[parent] for parent, _ in arcs]
            return [*path, path[0]]
    return []

"""Layered layout of a DAG for its drawing: the level of each node, and its position there.

Also its arcs, and its bytes for the cache and the browser. A drawing depends on nodes and arcs
only, which never change, so it can be cached. Nodes are numbered from 0 in the order of their ids,
which is that of the DAG file.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import rustworkx
from django.db import connection

from wms.dags.models import Dag, Node
from wms.dags.reading.sql import READ_ARCS, READ_NODE_IDS
from wms.dags.states import NodeKind

#: Version of the format of `Drawing.packed`, so that no older one is read.
FORMAT = 1
_HEAD = struct.Struct("<QIII")
#: Number of sweeps that reduce crossings: down by the parents, then up by the children.
_SWEEPS = 2
#: Limit of nodes for the sweeps; the arcs of larger DAGs are never drawn all at once.
_MAX_SWEPT = 20_000


@dataclass(frozen=True)
class Drawing:
    """Layout of a DAG: node `i` with id `first_id + offsets[i]` is `orders[i]` of `levels[i]`.

    Arc `k` leads from node `parents[k]` to node `children[k]`; arcs are sorted.
    """

    first_id: int
    offsets: array[int]
    levels: array[int]
    orders: array[int]
    parents: array[int]
    children: array[int]

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self.offsets)

    @property
    def arc_count(self) -> int:
        """Number of arcs."""
        return len(self.parents)

    @cached_property
    def level_count(self) -> int:
        """Number of levels."""
        return max(self.levels, default=-1) + 1

    @cached_property
    def by_level(self) -> array[int]:
        """Nodes sorted by level."""
        return array("I", sorted(range(self.node_count), key=self.levels.__getitem__))

    @cached_property
    def first_arcs(self) -> array[int]:
        """Index of the first arc of each node among the sorted arcs; one more for the end."""
        first = array("I", bytes(4 * (self.node_count + 1)))
        for parent in self.parents:
            first[parent + 1] += 1
        for node in range(self.node_count):
            first[node + 1] += first[node]
        return first

    def id_of(self, index: int) -> int:
        """Id of a node by its number."""
        return self.first_id + self.offsets[index]

    def index_of(self, node_id: int) -> int | None:
        """Number of a node in the drawing; None for a node of another DAG."""
        offset = node_id - self.first_id
        if offset < 0 or offset > 0xFFFFFFFF:
            return None
        index = bisect_left(self.offsets, offset)
        is_there = index < len(self.offsets) and self.offsets[index] == offset
        return index if is_there else None

    def graph(self) -> rustworkx.PyDiGraph[int, None]:
        """Graph of nodes and arcs; built for each call, since it is large."""
        return _graph(self.node_count, self.parents, self.children)

    def packed(self) -> bytes:
        """Compressed bytes of the drawing."""
        head = _HEAD.pack(self.first_id, FORMAT, self.node_count, self.arc_count)
        columns = (self.offsets, self.levels, self.orders, self.parents, self.children)
        return zlib.compress(head + b"".join(each.tobytes() for each in columns), 1)

    def columns(self) -> bytes:
        """Bytes for the browser: the head, then the columns of offsets, levels and orders."""
        head = _HEAD.pack(self.first_id, FORMAT, self.node_count, self.arc_count)
        return head + b"".join(each.tobytes() for each in (self.offsets, self.levels, self.orders))


def unpack_drawing(content: bytes) -> Drawing | None:
    """Drawing from packed bytes; None for another format."""
    plain = zlib.decompress(content)
    first_id, version, nodes, arcs = _HEAD.unpack_from(plain)
    if version != FORMAT:
        return None
    columns, start = [], _HEAD.size
    for count in (nodes, nodes, nodes, arcs, arcs):
        columns.append(array("I", plain[start : start + 4 * count]))
        start += 4 * count
    return Drawing(first_id, *columns)


def draw(dag: Dag) -> Drawing:
    """Drawing of a DAG, computed from its nodes and arcs."""
    ids, parents, children = _read(dag)
    final = Node.objects.filter(dag=dag, kind=NodeKind.FINAL).values_list("pk", flat=True)
    levels, orders = assign_positions(
        len(ids), parents, children, last=[bisect_left(ids, pk) for pk in final]
    )
    first_id = ids[0] if ids else 0
    offsets = array("I", [pk - first_id for pk in ids])
    return Drawing(first_id, offsets, levels, orders, parents, children)


def _read(dag: Dag) -> tuple[array[int], array[int], array[int]]:
    with connection.cursor() as cursor:
        cursor.execute(READ_NODE_IDS, [dag.pk])
        ids = _whole_numbers(cursor.fetchone()[0])
        if not ids:
            return ids, array("I"), array("I")
        cursor.execute(READ_ARCS, [ids[0], ids[-1]])
        ends = [_whole_numbers(column) for column in cursor.fetchone()]
    if ids[-1] - ids[0] == len(ids) - 1:
        first = ids[0]
        parents, children = (array("I", [pk - first for pk in column]) for column in ends)
        return ids, parents, children
    place = {pk: index for index, pk in enumerate(ids)}
    own = [(place[p], place[c]) for p, c in zip(*ends, strict=True) if p in place and c in place]
    return ids, array("I", [p for p, _ in own]), array("I", [c for _, c in own])


def _whole_numbers(content: bytes | None) -> array[int]:
    numbers = array("q", bytes(content or b""))
    numbers.byteswap()
    return numbers


def assign_positions(
    count: int,
    parents: Sequence[int],
    children: Sequence[int],
    *,
    last: Iterable[int] = (),
) -> tuple[array[int], array[int]]:
    """Levels of `count` nodes and their positions there.

    The nodes of `last` get a level of their own after all others. Positions in small DAGs make few
    arcs cross. Time is linear in nodes and arcs, except for sorting.
    """
    generations = [
        sorted(level)
        for level in rustworkx.topological_generations(_graph(count, parents, children))
    ]
    behind = set(last)
    if behind:
        kept = [[node for node in level if node not in behind] for level in generations]
        generations = [*(level for level in kept if level), sorted(behind)]
    if count <= _MAX_SWEPT:
        _reduce_crossings(count, generations, parents, children)
    levels, orders = array("I", bytes(4 * count)), array("I", bytes(4 * count))
    for number, level in enumerate(generations):
        for order, node in enumerate(level):
            levels[node], orders[node] = number, order
    return levels, orders


def _reduce_crossings(
    count: int,
    generations: list[list[int]],
    parents: Sequence[int],
    children: Sequence[int],
) -> None:
    """Sort each level by the mean position of the nodes' neighbours, in sweeps."""
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for parent, child in zip(parents, children, strict=True):
        above[child].append(parent)
        below[parent].append(child)
    place = [0.0] * count
    for level in generations:
        _set_positions(level, place)
    for sweep in range(_SWEEPS):
        is_down = sweep % 2 == 0
        near = above if is_down else below
        for level in generations if is_down else reversed(generations):
            # A node without neighbours keeps its position.
            level.sort(
                key=lambda node, near=near: (  # type: ignore[misc]
                    sum([place[other] for other in near[node]]) / len(near[node])
                    if near[node]
                    else place[node]
                )
            )
            _set_positions(level, place)


def _set_positions(level: Sequence[int], place: list[float]) -> None:
    """Set positions from 0 to 1, so that levels of any size compare."""
    step = 1 / len(level)
    for order, node in enumerate(level):
        place[node] = (order + 0.5) * step


def _graph(
    count: int, parents: Iterable[int], children: Iterable[int]
) -> rustworkx.PyDiGraph[int, None]:
    graph: rustworkx.PyDiGraph[int, None] = rustworkx.PyDiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from_no_data(list(zip(parents, children, strict=True)))
    return graph

"""Folding of a DAG drawing: nodes grouped into boxes by level, sub-DAG, splice or name prefix."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import rustworkx

from wms.dags.reading.drawing import Drawing
from wms.dags.states import NodeKind

#: Most nodes of an open group that are drawn one by one.
MOST_MEMBERS = 100
#: More groups than this are folded by level, and more levels than this in bundles.
MOST_GROUPS = 150
_SPLICE = "+"
# `simulate_0042` and `simulate_0043` are of a kind, and so are `fit.17` and `fit.18`.
_PREFIX = re.compile(r"[\W_]*\d.*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class NodeFact:
    """Data of one node for the drawing, besides its position and state.

    `join` is the number of arcs that have to hold, and of all, where not all have to.
    """

    id: int
    name: str
    kind: str
    inner: int | None = None
    join: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Element:
    """One box of the drawing: a node, or a group of nodes by their numbers in the drawing.

    `key` names the group in the address; that of a node is empty. `is_rest` are the nodes of an
    open group that are not drawn one by one.
    """

    members: Sequence[int]
    key: str = ""
    label: str = ""
    is_rest: bool = False

    @property
    def is_group(self) -> bool:
        """True for several nodes in one box."""
        return bool(self.key)


@dataclass(frozen=True, slots=True)
class Fold:
    """A way to fold: its name in the address, its label, and the group of each node."""

    name: str
    words: str
    keys: Sequence[str]


def folds_of(drawing: Drawing, facts: Sequence[NodeFact]) -> Mapping[str, Fold]:
    """Folds that make sense for a DAG, the best first."""
    found = {"prefix": _by_name("prefix", "Name", facts, _prefix)}
    if any(_SPLICE in fact.name for fact in facts):
        found["splice"] = _by_name("splice", "Splice", facts, _splice)
    if any(fact.kind == NodeKind.SUBDAG for fact in facts):
        found["inner"] = Fold("inner", "Sub-DAG", _inner_keys(drawing, facts))
    folds = {
        name: fold
        for name, fold in found.items()
        if name == "inner" or 1 < len(set(fold.keys)) <= MOST_GROUPS
    }
    return {**folds, "level": Fold("level", "Level", _level_keys(drawing))}


def _by_name(name: str, words: str, facts: Sequence[NodeFact], key: Callable[[str], str]) -> Fold:
    return Fold(name, words, [key(fact.name) for fact in facts])


def _prefix(name: str) -> str:
    return _PREFIX.sub("", name) or "other names"


def _splice(name: str) -> str:
    return name.rpartition(_SPLICE)[0] or "outside of splices"


def _level_keys(drawing: Drawing) -> list[str]:
    bundle = max(1, -(-drawing.level_count // MOST_GROUPS))
    names = []
    for level in range(drawing.level_count):
        first = level - level % bundle + 1
        last = min(first + bundle - 1, drawing.level_count)
        names.append(f"level {first}" if first == last else f"levels {first} to {last}")
    return [names[level] for level in drawing.levels]


def _inner_keys(drawing: Drawing, facts: Sequence[NodeFact]) -> list[str]:
    """Group of each node: sub-DAGs alone, the nodes between them by level."""
    return [
        "" if fact.kind == NodeKind.SUBDAG else key
        for fact, key in zip(facts, _level_keys(drawing), strict=True)
    ]


def folded(drawing: Drawing, fold: Fold, *, opened: Collection[str]) -> list[Element]:
    """Elements of a drawing; groups named in `opened` are drawn node by node.

    Groups that would wait for each other in a circle are cut by levels.
    """
    keys = list(fold.keys)
    if not _is_acyclic(drawing, keys):
        keys = [
            f"{key}, level {level + 1}" if key else ""
            for key, level in zip(keys, drawing.levels, strict=True)
        ]
    groups: dict[str, list[int]] = {}
    elements = []
    for node, key in enumerate(keys):
        if key:
            groups.setdefault(key, []).append(node)
        else:
            elements.append(Element([node]))
    for key, members in groups.items():
        elements += _elements_of(key, members, is_open=key in opened)
    return elements


def _elements_of(key: str, members: Sequence[int], *, is_open: bool) -> list[Element]:
    if len(members) == 1:
        return [Element(members)]
    if not is_open:
        return [Element(members, key, key)]
    drawn = [Element([node]) for node in members[:MOST_MEMBERS]]
    rest = members[MOST_MEMBERS:]
    if rest:
        drawn.append(Element(rest, key, f"{len(rest)} more of {key}", is_rest=True))
    return drawn


def _is_acyclic(drawing: Drawing, keys: Sequence[str]) -> bool:
    place: dict[str, int] = {}
    numbers = [place.setdefault(key or f"\0{node}", len(place)) for node, key in enumerate(keys)]
    arcs = {
        (numbers[parent], numbers[child])
        for parent, child in zip(drawing.parents, drawing.children, strict=True)
        if numbers[parent] != numbers[child]
    }
    graph: rustworkx.PyDiGraph[int, None] = rustworkx.PyDiGraph()
    graph.add_nodes_from(range(len(place)))
    graph.add_edges_from_no_data(list(arcs))
    return rustworkx.is_directed_acyclic_graph(graph)

"""Geometry of a graph drawing: positions, sizes and links of boxes, and lines between them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

from portal.shared.state_badges import WORDS, badge_of
from portal.web.graph.folding import Element, NodeFact
from portal.web.graph.state_bars import BarSegment, in_words, stretches_of
from wms.dags.joins.selectors import DrawnCondition
from wms.dags.reading.drawing import assign_positions
from wms.dags.reading.drawing_states import DRAWN
from wms.dags.states import NodeKind

BOX_WIDTH = 176
_BOX_HEIGHT = 28
_GROUP_HEIGHT = 48
_ROW_GAP = 8
_LEVEL_GAP = 48
#: The same where expressions stand beside arcs.
_LABEL_GAP = 136
_COLUMN_GAP = 14
_MARGIN = 16
_BAR = BOX_WIDTH - 20
_LETTERS = 21
#: How far the outline of a gate points to each side.
_POINT = 9
#: Levels of more boxes than this are drawn in several columns.
_LEAST_ROWS = 14
#: More lines than this are not drawn.
MOST_WIRES = 4_000
#: Conditions of one line that are told.
_CONDITIONS_TOLD = 3
_OUTCOMES = {None: "", True: "holds", False: "ruled-out"}


@dataclass(frozen=True, slots=True)
class Box:
    """An element with its position. `index` is the node's number in the drawing, -1 for a group."""

    number: int
    index: int
    x: int
    y: int
    height: int
    label: str
    name: str
    words: str
    href: str
    tone: str
    shape: str
    kind: str = ""
    state: str = ""
    node_id: int = 0
    is_group: bool = False
    is_found: bool = False
    count: int = 1
    members: str = ""
    stretches: Sequence[BarSegment] = ()
    width: int = BOX_WIDTH
    #: What is told of the node besides its state, in words; and its join in a sign.
    more: str = ""
    join: str = ""

    @property
    def middle(self) -> float:
        """Height at which lines meet the box."""
        return self.y + self.height / 2

    @property
    def corners(self) -> str:
        """Outline of a gate: six corners, of which two point to its neighbours."""
        left, right, top, bottom = self.x, self.x + self.width, self.y, self.y + self.height
        return (
            f"M{left} {self.middle:g}L{left + _POINT} {top}H{right - _POINT}L{right} "
            f"{self.middle:g}L{right - _POINT} {bottom}H{left + _POINT}Z"
        )


@dataclass(frozen=True, slots=True)
class Wire:
    """A line between two boxes, which stands for one or more arcs."""

    path: str
    parent: int
    child: int
    is_thick: bool
    #: Of the arcs with conditions that it stands for: the expression of one alone, cut; all that is
    #: told of them; and where the expression is written.
    label: str = ""
    condition: str = ""
    #: What came of all the conditions: `holds`, `ruled-out`, or nothing yet, or different things.
    outcome: str = ""
    label_x: float = 0.0
    label_y: float = 0.0


@dataclass(frozen=True, slots=True)
class Scene:
    """A whole drawing; `wires_left_out` is the number of lines that were too many."""

    boxes: Sequence[Box]
    wires: Sequence[Wire]
    width: int
    height: int
    states: Sequence[str]
    wires_left_out: int = 0

    @property
    def has_conditions(self) -> bool:
        """Whether a drawn arc has a condition."""
        return any(wire.condition for wire in self.wires)

    @property
    def has_joins(self) -> bool:
        """Whether a drawn node needs not all of its arcs."""
        return any(box.join for box in self.boxes)

    @property
    def has_gates(self) -> bool:
        """Whether a gate is drawn."""
        return any(box.kind == NodeKind.GATE for box in self.boxes)


@dataclass(frozen=True, slots=True)
class BoxAddresses:
    """Addresses that boxes link to: a node's page, an opened group, its rest as a table."""

    node: Callable[[int], str]
    group: Callable[[Element], str]


def scene_of(
    elements: Sequence[Element],
    arcs: Iterable[tuple[int, int]],
    facts: Mapping[int, NodeFact],
    codes: bytes,
    addresses: BoxAddresses,
    *,
    found: Collection[int] = (),
    last: Collection[int] = (),
    conditions: Mapping[tuple[int, int], DrawnCondition] = MappingProxyType({}),
) -> Scene:
    """Place the elements and draw the arcs between them.

    `arcs` are of nodes by number; those with an end outside are left out. `last` are nodes that
    stand behind all others, `found` those to be marked. `conditions` are of arcs that have one.
    """
    place = {node: at for at, element in enumerate(elements) for node in element.members}
    joined = Counter(
        (place[parent], place[child])
        for parent, child in arcs
        if parent in place and child in place and place[parent] != place[child]
    )
    behind = [place[node] for node in last if node in place]
    parents, children = [a for a, _ in joined], [b for _, b in joined]
    levels, orders = assign_positions(len(elements), parents, children, last=behind)
    told: dict[tuple[int, int], list[DrawnCondition]] = {}
    for (parent, child), condition in conditions.items():
        if parent in place and child in place:
            told.setdefault((place[parent], place[child]), []).append(condition)
    spots, width, height = _spots(elements, levels, orders, gap=_LABEL_GAP if told else _LEVEL_GAP)
    boxes = [
        _box(number, element, spots[number], facts, codes, addresses, set(found))
        for number, element in enumerate(elements)
    ]
    shown = dict(list(joined.items())[:MOST_WIRES])
    present = {code for each in elements for code in {codes[node] for node in each.members}}
    return Scene(
        # In the order in which they are read, which is that of the keyboard.
        boxes=sorted(boxes, key=lambda box: (box.x, box.y)),
        wires=[
            _wire(boxes[a], boxes[b], count, told.get((a, b), ()))
            for (a, b), count in shown.items()
        ],
        width=width,
        height=height,
        states=[state for place, state in enumerate(DRAWN) if place in present],
        wires_left_out=len(joined) - len(shown),
    )


def _spots(
    elements: Sequence[Element], levels: Sequence[int], orders: Sequence[int], *, gap: int
) -> tuple[dict[int, tuple[int, int]], int, int]:
    """Upper left corner of each element, and the size of the drawing."""
    rows = max(_LEAST_ROWS, math.ceil(math.sqrt(len(elements)) * 1.6))
    spots: dict[int, tuple[int, int]] = {}
    x, lowest = _MARGIN, 0
    order = sorted(range(len(elements)), key=lambda n: (levels[n], orders[n]))
    heights: list[tuple[list[list[int]], list[int]]] = []
    for _, level in groupby(order, key=lambda n: levels[n]):
        members = list(level)
        columns = [members[at : at + rows] for at in range(0, len(members), rows)]
        tall = [sum(_height(elements[n]) + _ROW_GAP for n in column) for column in columns]
        heights.append((columns, tall))
        lowest = max(lowest, *tall)
    for columns, tall in heights:
        for column, height in zip(columns, tall, strict=True):
            # Each column hangs around the middle, so that lines are short.
            y = _MARGIN + (lowest - height) // 2
            for number in column:
                spots[number] = (x, y)
                y += _height(elements[number]) + _ROW_GAP
            x += BOX_WIDTH + _COLUMN_GAP
        x += gap - _COLUMN_GAP
    width = max(x - gap + _MARGIN, BOX_WIDTH + 2 * _MARGIN)
    return spots, width, lowest + 2 * _MARGIN


def _height(element: Element) -> int:
    return _GROUP_HEIGHT if element.is_group else _BOX_HEIGHT


def _box(
    number: int,
    element: Element,
    spot: tuple[int, int],
    facts: Mapping[int, NodeFact],
    codes: bytes,
    addresses: BoxAddresses,
    found: Collection[int],
) -> Box:
    x, y = spot
    if element.is_group:
        counts = Counter(DRAWN[codes[node]] for node in element.members)
        worst = "failed" if counts["failed"] else max(counts, key=lambda state: counts[state])
        return Box(
            number=number, index=-1, x=x, y=y, height=_GROUP_HEIGHT,
            label=shortened(element.label), name=element.label, words=in_words(counts),
            href=addresses.group(element), tone=badge_of(worst).tone, shape="", is_group=True,
            count=len(element.members), members=_ranges(element.members),
            stretches=stretches_of(counts, length=_BAR, keeps_empty=True),
            is_found=any(node in found for node in element.members),
        )  # fmt: skip
    node = element.members[0]
    fact, state = facts[node], DRAWN[codes[node]]
    badge = badge_of(state)
    return Box(
        number=number, index=node, x=x, y=y, height=_BOX_HEIGHT,
        label=shortened(fact.name), name=fact.name, words=WORDS.get(state, state),
        href=addresses.node(fact.id), tone=badge.tone, shape=badge.shape, state=state,
        node_id=fact.id, kind="" if fact.kind == "job" else fact.kind, is_found=node in found,
        more=_more(fact), join=_sign(fact.join),
    )  # fmt: skip


def _more(fact: NodeFact) -> str:
    kind = "" if fact.kind == NodeKind.JOB else f" ({fact.kind})"
    return kind if fact.join is None else f"{kind}, {needs_of(*fact.join)}"


def needs_of(needed: int, arcs: int) -> str:
    """Join in words: how many of a node's arcs have to hold; empty where all have to."""
    if needed >= arcs:
        return ""
    return f"needs {'any' if needed == 1 else needed} of its {arcs} arcs"


def _sign(join: tuple[int, int] | None) -> str:
    if join is None:
        return ""
    return "any" if join[0] == 1 else f"{join[0]}/{join[1]}"


def shortened(name: str) -> str:
    """A name cut to fit a box: its beginning and end, which tell nodes apart."""
    if len(name) <= _LETTERS:
        return name
    end = _LETTERS // 2
    return f"{name[: _LETTERS - end - 1]}…{name[-end:]}"


def _ranges(members: Sequence[int]) -> str:
    """`0-2,5` for 0, 1, 2 and 5."""
    parts: list[str] = []
    start = before = members[0]
    for node in [*members[1:], -1]:
        if node != before + 1:
            parts.append(f"{start}-{before}" if before > start else str(start))
            start = node
        before = node
    return ",".join(parts)


def _wire(parent: Box, child: Box, count: int, conditions: Sequence[DrawnCondition]) -> Wire:
    x1, y1 = parent.x + parent.width, parent.middle
    x2, y2 = child.x, child.middle
    bend = max(24.0, (x2 - x1) / 2)
    path = f"M{x1} {y1:g}C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2} {y2:g}"
    if not conditions:
        return Wire(path, parent.number, child.number, is_thick=count > 1)
    outcomes = {_OUTCOMES[each.holds] for each in conditions}
    is_one = count == 1
    return Wire(
        path, parent.number, child.number, is_thick=not is_one,
        label=shortened(conditions[0].expression) if is_one else "",
        condition=_told(conditions[0]) if is_one else _told_together(conditions, count),
        outcome=outcomes.pop() if len(outcomes) == 1 else "",
        label_x=(x1 + x2) / 2, label_y=(y1 + y2) / 2 - 4,
    )  # fmt: skip


def _told(condition: DrawnCondition) -> str:
    return condition.reason or f"when {condition.expression}"


def _told_together(conditions: Sequence[DrawnCondition], count: int) -> str:
    first = "; ".join(_told(each) for each in conditions[:_CONDITIONS_TOLD])
    more = "; and so on" if len(conditions) > _CONDITIONS_TOLD else ""
    return f"{len(conditions)} of {count} arcs have conditions: {first}{more}"

"""Level map of a DAG: one column for each level, stacked by node state.

Also the tab of the DAG page that shows it with its table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from portal.shared.drawings import drawing_of
from portal.web.dags.reading import DagReading
from portal.web.graph.state_bars import STACKED, BarSegment, in_words, stretches_of
from wms.dags.reading.drawing import Drawing
from wms.dags.reading.drawing_states import DRAWN

#: More levels than this share columns.
_MOST_COLUMNS = 100
_WIDTH = 1000.0
_HEIGHT = 180.0
_GAP = 2.0


@dataclass(frozen=True, slots=True)
class Column:
    """One or several consecutive levels, counted from 1, with the lengths of their stretches."""

    first: int
    last: int
    counts: Mapping[str, int]
    x: float
    width: float
    height: float
    stretches: Sequence[BarSegment]

    @property
    def label(self) -> str:
        """Label of the column."""
        one = f"Level {self.first}"
        return one if self.first == self.last else f"Levels {self.first} to {self.last}"

    @property
    def total(self) -> int:
        """Number of nodes."""
        return sum(self.counts.values())

    @property
    def words(self) -> str:
        """Counts by state as text."""
        return in_words(self.counts)

    @property
    def top(self) -> float:
        """Upper end of the column."""
        return round(_HEIGHT - self.height, 2)


@dataclass(frozen=True, slots=True)
class LevelMap:
    """All columns; `states` are those with any node."""

    columns: Sequence[Column]
    states: Sequence[str]
    level_count: int
    node_count: int
    most: int
    width: float = _WIDTH
    height: float = _HEIGHT

    @property
    def is_bundled(self) -> bool:
        """True when a column stands for several levels."""
        return self.level_count > len(self.columns)


def levels_tab(request: HttpRequest, read: DagReading) -> Mapping[str, Any]:
    """Context of the levels tab: the level map and its table."""
    return {"map": level_map(drawing_of(read.dag), read.states.codes)}


def level_map(drawing: Drawing, codes: bytes) -> LevelMap:
    """Number of nodes by level and state. Linear in the nodes."""
    per_column = max(1, -(-drawing.level_count // _MOST_COLUMNS))
    counted: dict[int, Counter[str]] = {
        first: Counter() for first in range(0, drawing.level_count, per_column)
    }
    for (level, code), count in Counter(zip(drawing.levels, codes, strict=False)).items():
        counted[level - level % per_column][DRAWN[code]] += count
    most = max((counts.total() for counts in counted.values()), default=1)
    pitch = _WIDTH / max(len(counted), 1)
    columns = []
    for place, (first, counts) in enumerate(counted.items()):
        height = max(2.0, _HEIGHT * counts.total() / most)
        columns.append(
            Column(
                first=first + 1,
                last=min(first + per_column, drawing.level_count),
                counts=counts,
                x=round(place * pitch, 2),
                width=round(max(pitch - _GAP, 1.0), 2),
                height=round(height, 2),
                stretches=stretches_of(counts, length=height),
            )
        )
    present = set().union(*(column.counts for column in columns)) if columns else set()
    return LevelMap(
        columns=columns,
        states=[state for state in STACKED if state in present],
        level_count=drawing.level_count,
        node_count=drawing.node_count,
        most=most,
    )

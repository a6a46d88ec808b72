"""Timeline tab of the DAG page: bars over time by level, or by node for a small selection.

Also the axis, the choice of a time range, and the longest path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from portal.shared.drawings import drawing_of, ends_by
from portal.web.dags.reading import DagReading
from portal.web.dags.timeline_rows import MOST_ROWS, Row, nodes_drawn, rows_of_nodes
from portal.web.nodes.selection import NodeSelection, chosen_rows, search_nodes, selection_of
from wms.dags.models import Node
from wms.dags.reading.drawing import Drawing
from wms.dags.reading.drawing_analysis import NodeTimes, longest_path
from wms.dags.reading.drawing_states import DRAWN
from wms.dags.states import DAG_TERMINAL, NODE_TERMINAL

#: More levels than this share rows.
_MOST_LEVELS = 40
_BINS = 60
#: Time ranges: the address's word, the label of its link, seconds back from the end.
SPANS = (("", "All", 0), ("6h", "Last 6 h", 21_600), ("1h", "Last hour", 3_600),
         ("10m", "Last 10 min", 600))  # fmt: skip
_ENDED = frozenset(DRAWN.index(state) for state in NODE_TERMINAL)
#: Marks of the axis stand at round distances of seconds.
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200,
          86_400, 172_800, 604_800, 2_592_000)  # fmt: skip
_MOST_TICKS = 7


@dataclass(frozen=True, slots=True)
class Axis:
    """Time axis that maps moments to 0 to 100."""

    start: float
    end: float

    def at(self, moment: float) -> float:
        """Position of a moment; moments outside are put at the border."""
        part = (moment - self.start) / max(self.end - self.start, 1e-6)
        return round(100 * min(max(part, 0.0), 1.0), 3)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Round moments with their labels, in UTC."""
        span = max(self.end - self.start, 1.0)
        step = next((each for each in _STEPS if span / each <= _MOST_TICKS), _STEPS[-1])
        form = "%H:%M:%S" if step < 60 else "%H:%M" if span < 86_400 else "%d %b %H:%M"
        first = -(-self.start // step) * step
        moments = [first + step * k for k in range(int((self.end - first) // step) + 1)]
        return [(self.at(m), datetime.fromtimestamp(m, UTC).strftime(form)) for m in moments]

    @property
    def begins_at(self) -> datetime:
        """Start of the axis as a datetime."""
        return datetime.fromtimestamp(self.start, UTC)

    @property
    def ends_at(self) -> datetime:
        """End of the axis as a datetime."""
        return datetime.fromtimestamp(self.end, UTC)


@dataclass(frozen=True, slots=True)
class LevelRow:
    """Row of one or several consecutive levels: first ready node to last end.

    `bins` are (x, width, density from 1 to 4, count) of the nodes that ended; `critical` are the
    stretches of the longest path.
    """

    first: int
    last: int
    total: int
    ended: int
    begun_at: datetime | None
    ended_at: datetime | None
    x: float
    width: float
    bins: Sequence[tuple[float, float, int, int]]
    critical: Sequence[tuple[float, float]]

    @property
    def label(self) -> str:
        """Label of the row."""
        one = f"Level {self.first}"
        return one if self.first == self.last else f"Levels {self.first}-{self.last}"


def timeline_tab(request: HttpRequest, read: DagReading) -> Mapping[str, Any]:
    """Timeline with one row per level, or per node when at most MOST_ROWS were chosen."""
    dag, codes = read.dag, read.states.codes
    choice = selection_of(request.GET)
    now = timezone.now()
    drawing = drawing_of(dag)
    begun = (dag.matched_at or dag.created_at).timestamp()
    end = (dag.ended_at or now if dag.state in DAG_TERMINAL else now).timestamp()
    ends = ends_by(dag, read.states, begun=begun, now=end)
    axis = _axis(request, begun, end)
    path = longest_path(ends)
    context: dict[str, Any] = {
        "choice": choice,
        "axis": axis,
        "spans": _spans(request),
        "most_rows": MOST_ROWS,
        "path_total": len(path),
        "mean": timedelta(seconds=ends.mean_s),
    }
    if choice.is_everything and drawing.node_count > MOST_ROWS:
        return context | {"level_rows": _level_rows(drawing, codes, ends, path, axis)}
    nodes, total = _chosen(read, choice)
    if total > MOST_ROWS:
        return context | {
            "level_rows": _level_rows(drawing, codes, ends, path, axis),
            "chosen_total": total,
        }
    on_path = {drawing.id_of(index) for index in path}
    return context | {"rows": _placed(rows_of_nodes(dag, nodes, now=now), axis), "on_path": on_path}


def _chosen(read: DagReading, choice: NodeSelection) -> tuple[list[Node], int]:
    """Chosen nodes and their number; no nodes if there are too many."""
    nodes = nodes_drawn(read.dag)
    if choice.is_searched:
        ids = search_nodes(read.dag, read.states, choice).ids
        found = nodes.in_bulk(list(ids)) if len(ids) <= MOST_ROWS else {}
        return [found[pk] for pk in ids if pk in found], len(ids)
    chosen = list(chosen_rows(nodes, choice).order_by("ordinal")[: MOST_ROWS + 1])
    return chosen, len(chosen)


def _axis(request: HttpRequest, begun: float, end: float) -> Axis:
    back = next((s for name, _, s in SPANS if name == request.GET.get("span", "")), 0)
    return Axis(max(begun, end - back) if back else begun, max(end, begun + 1))


def _spans(request: HttpRequest) -> list[tuple[str, str, bool]]:
    made = []
    for name, words, _ in SPANS:
        query = request.GET.copy()
        query["span"] = name
        made.append((f"?{query.urlencode()}", words, name == request.GET.get("span", "")))
    return made


def _placed(rows: Sequence[Row], axis: Axis) -> list[tuple[Row, list[tuple[float, float, Any]]]]:
    """Rows with the positions of their spans; spans before the axis are left out."""
    return [
        (
            row,
            [
                (axis.at(each.start), round(max(axis.at(each.end) - axis.at(each.start), 0.15), 3),
                 each)
                for each in row.spans
                if each.end >= axis.start
            ],
        )
        for row in rows
    ]  # fmt: skip


def _level_rows(
    drawing: Drawing, codes: bytes, ends: NodeTimes, path: Sequence[int], axis: Axis
) -> list[LevelRow]:
    per_row = max(1, -(-drawing.level_count // _MOST_LEVELS))
    members: dict[int, list[int]] = {n: [] for n in range(0, drawing.level_count, per_row)}
    for node, level in enumerate(drawing.levels):
        members[level - level % per_row].append(node)
    on_path: dict[int, list[int]] = {}
    for node in path:
        level = drawing.levels[node]
        on_path.setdefault(level - level % per_row, []).append(node)
    return [
        _level_row(
            (first + 1, min(first + per_row, drawing.level_count)),
            nodes,
            codes,
            ends,
            on_path.get(first, []),
            axis,
        )
        for first, nodes in members.items()
    ]


def _level_row(
    levels: tuple[int, int],
    nodes: Sequence[int],
    codes: bytes,
    ends: NodeTimes,
    path: Sequence[int],
    axis: Axis,
) -> LevelRow:
    ended = [ends.ends[node] for node in nodes if codes[node] in _ENDED]
    open_count = len(nodes) - len(ended)
    starts = [ends.starts[n] for n in nodes if codes[n] in _ENDED or ends.starts[n] < axis.end]
    begun = min(starts, default=None)
    last = axis.end if open_count and begun is not None else max(ended, default=None)
    x = axis.at(begun) if begun is not None else 0.0
    width = axis.at(last) - x if last is not None else 0.0
    return LevelRow(
        first=levels[0],
        last=levels[1],
        total=len(nodes),
        ended=len(ended),
        begun_at=_moment(begun),
        ended_at=None if open_count else _moment(last),
        x=x,
        width=round(max(width, 0.0), 3),
        bins=_bins(ended, axis),
        critical=[
            (axis.at(ends.starts[n]), round(axis.at(ends.ends[n]) - axis.at(ends.starts[n]), 3))
            for n in path
            if ends.starts[n] < axis.end
        ],
    )


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _bins(ended: Sequence[float], axis: Axis) -> list[tuple[float, float, int, int]]:
    size = (axis.end - axis.start) / _BINS
    counts: dict[int, int] = {}
    for moment in ended:
        if axis.start <= moment <= axis.end:
            place = min(int((moment - axis.start) / size), _BINS - 1)
            counts[place] = counts.get(place, 0) + 1
    most = max(counts.values(), default=1)
    width = 100 / _BINS
    return [
        (round(place * width, 3), round(width, 3), -(-4 * count // most), count)
        for place, count in sorted(counts.items())
    ]

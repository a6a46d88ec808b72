"""The history charts as pages show them: for the script, as a sentence, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from portal.history.drawing import Drawn, DrawnLine, read_pane, stamp
from portal.history.panes import FIXED, Kind, Pane
from portal.history.windows import FUNCTIONS, Window
from portal.web.chart_words import sentence_of
from portal.web.looks import LOOKS, look_of
from wms.core.models import User
from wms.history.annotations import Annotation, annotations_between

#: At most so many lines of a table are shown; the rest is in the file.
TABLE_ROWS = 60
#: Lines that are no states, beside which they would have the same tone, or have one by their place.
_OWN_TONES = {"requested": "wait", "granted": "next", "submitted": "next", "started": "go"}
_TONES = ("go", "good", "warn", "next", "bad", "wait", "off")
#: A pane of more lines than this leaves out those that were zero all the time.
_FEW_LINES = 5


#: What other pages show charts of.
PANELS = FIXED


@dataclass(frozen=True, slots=True)
class Cell:
    """What a table tells of a bin: a figure, and what it was between, if that is known."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ChartTable:
    """The latest bins as lines of a table: by label one cell for each line, None for a gap."""

    labels: Sequence[str]
    rows: Sequence[tuple[datetime, Sequence[tuple[str, Cell | None]]]]
    total: int
    caption: str
    has_spread: bool


def legend_of(drawn: Drawn) -> str:
    """What a point is: the function, and the width of its bin."""
    if drawn.pane.kind == Kind.COUNT:
        return f"sum in {drawn.bin_words}"
    if drawn.pane.kind == Kind.SPREAD:
        return f"of those that started in {drawn.bin_words}"
    return f"{FUNCTIONS[drawn.window.function]} of {drawn.bin_words}"


def chart_data(pane: Pane, window: Window, user: User) -> dict[str, Any]:
    """What the script draws. Two queries."""
    columns = ("avg", "max") if window.function == "avg" else (window.function,)
    drawn = read_pane(pane, window, columns=columns)
    shown = _shown(drawn)
    marks = annotations_between(user, since=window.since, until=window.until, site=window.site)
    return {
        "name": pane.name,
        "title": pane.title,
        "unit": pane.unit,
        "kind": pane.kind.value,
        "site": window.site if drawn.is_at_site else "",
        "legend": legend_of(drawn),
        "summary": sentence_of(drawn, [each for each in shown if not each.line.is_folded]),
        "file": drawn.file_stem,
        "from": stamp(window.since.timestamp()),
        "to": stamp(window.until.timestamp()),
        "step_s": drawn.resolution.step_s,
        "first": drawn.starts[0] if drawn.starts else 0,
        "bins": len(drawn.starts),
        "lines": [
            {
                "name": each.line.name,
                "label": each.line.label,
                "tone": _tone(each, place),
                "place": place,
                "is_folded": each.line.is_folded,
                **_drawn_columns(each),
            }
            for place, each in enumerate(drawn.lines)
            if each in shown
        ],
        "marks": [_mark(each) for each in marks.told],
    }


def _drawn_columns(line: DrawnLine) -> dict[str, Any]:
    value, *rest = line.columns.values()
    return {"value": value, "top": rest[0]} if rest else {"value": value}


def _tone(line: DrawnLine, place: int) -> str:
    name = line.line.name
    if name in LOOKS:
        return look_of(name).tone
    return _OWN_TONES.get(name) or _TONES[place % len(_TONES)]


def _mark(mark: Annotation) -> dict[str, Any]:
    until = mark.until and stamp(mark.until.timestamp())
    return asdict(mark) | {"at": stamp(mark.at.timestamp()), "until": until}


def _shown(drawn: Drawn) -> list[DrawnLine]:
    """The lines with anything to show."""
    can_be_zero = len(drawn.lines) <= _FEW_LINES
    return [
        each
        for each in drawn.lines
        if each.high
        or (can_be_zero and any(value is not None for value in next(iter(each.columns.values()))))
    ]


def chart_table(pane: Pane, window: Window) -> ChartTable:
    """The latest bins for readers of tables, latest first. One query."""
    drawn = read_pane(pane, window)
    shown = _shown(drawn)
    filled = [
        (
            datetime.fromtimestamp(start, UTC),
            [(each.line.label, _cell(each, at, window.function)) for each in shown],
        )
        for at, start in enumerate(drawn.starts)
    ]
    rows = [row for row in reversed(filled) if any(cell is not None for _, cell in row[1])]
    return ChartTable(
        [each.line.label for each in shown], rows[:TABLE_ROWS], len(rows), *_told(pane, window)
    )


def _told(pane: Pane, window: Window) -> tuple[str, bool]:
    """What the figures of a table are, and whether each stands with what it was between."""
    if pane.kind == Kind.COUNT:
        return "How many in each bin", False
    if pane.kind == Kind.SPREAD:
        return "What the shares of all values do not exceed", False
    if window.function == "avg":
        return "Average, with minimum to maximum", True
    return FUNCTIONS[window.function].capitalize(), False


def _cell(line: DrawnLine, at: int, function: str) -> Cell | None:
    """The figure that the chart draws; a mean with what it is the mean of."""
    columns = line.columns
    value = columns.get(function, next(iter(columns.values())))[at]
    if value is None:
        return None
    is_mean = function == "avg" and function in columns
    return Cell(value, columns["min"][at], columns["max"][at]) if is_mean else Cell(value)

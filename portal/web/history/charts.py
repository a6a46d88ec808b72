"""History charts on pages: JSON of a figure for the browser, caption, and table of bins.

Also the charts that other pages show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from portal.history.captions import sentence_of
from portal.history.figures import figure_json, styles_of, template_of
from portal.history.marks import marks_of
from portal.history.palettes import Scheme
from portal.history.pane_data import DrawnLine, read_pane, read_to_draw
from portal.history.panes import FIXED, Pane, PaneKind
from portal.history.windows import FUNCTIONS, Window
from wms.core.models import User

#: At most so many lines of a table are shown; the rest is in the file.
TABLE_ROWS = 60
#: A page tells title, unit and lines beside the drawing.
_ON_PAGE = {"title": None, "showlegend": False, "margin": {"l": 48, "r": 14, "t": 20, "b": 36}}


#: Charts that other pages show.
PANELS = FIXED


@dataclass(frozen=True, slots=True)
class TableCell:
    """Cell of a table: a figure, and its range if known."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ChartTable:
    """Latest bins as table rows: one cell for each line, None for a gap."""

    labels: Sequence[str]
    rows: Sequence[tuple[datetime, Sequence[tuple[str, TableCell | None]]]]
    total: int
    caption: str
    has_spread: bool


def chart_data(
    pane: Pane, window: Window, user: User, *, zone: tzinfo = UTC, is_fitted: bool = False
) -> dict[str, Any]:
    """Data for the chart script: the figure, page-specific changes of it, and its templates.

    Two queries, with groups a few more.
    """
    drawn = read_to_draw(pane, window, user)
    styles = styles_of(drawn)
    return {
        "figure": figure_json(drawn, marks_of(drawn, user).shown, zone=zone, is_fitted=is_fitted),
        "on_page": _ON_PAGE,
        "templates": {scheme.value: template_of(scheme, styles) for scheme in Scheme},
        "summary": sentence_of(drawn),
    }


def chart_table(pane: Pane, window: Window, user: User) -> ChartTable:
    """Latest bins as a table, latest first, with what the user may see."""
    drawn = read_pane(pane, window, user)
    shown = [line for _, line in drawn.shown]
    filled = [
        (
            datetime.fromtimestamp(start, UTC),
            [(each.line.label, _cell(each, at, window.function)) for each in shown],
        )
        for at, start in enumerate(drawn.starts)
    ]
    rows = [row for row in reversed(filled) if any(cell is not None for _, cell in row[1])]
    return ChartTable(
        [each.line.label for each in shown],
        rows[:TABLE_ROWS],
        len(rows),
        *_figure_caption(pane, window),
    )


def _figure_caption(pane: Pane, window: Window) -> tuple[str, bool]:
    """Caption of a table's figures, and whether each has a range."""
    if pane.kind == PaneKind.COUNT:
        return "How many in each bin", False
    if pane.kind == PaneKind.RATIO:
        return "Share in each bin", False
    if pane.kind == PaneKind.SPREAD:
        return "Percentiles of all values", False
    if pane.grouping(window.group_by):
        return "Average of each bin", False
    if window.function == "avg":
        return "Average, with minimum to maximum", True
    return FUNCTIONS[window.function].capitalize(), False


def _cell(line: DrawnLine, at: int, function: str) -> TableCell | None:
    """Figure that the chart draws; a mean with its number of values."""
    columns = line.columns
    value = columns.get(function, next(iter(columns.values())))[at]
    if value is None:
        return None
    is_mean = function == "avg" and "min" in columns
    return TableCell(value, columns["min"][at], columns["max"][at]) if is_mean else TableCell(value)

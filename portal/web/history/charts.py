"""History charts for pages: figure for the script, caption, and table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from portal.history.captions import sentence_of
from portal.history.drawing import DrawnLine, read_pane, read_to_draw
from portal.history.figures import figure_of, styles_of, template_of
from portal.history.marks import marks_of
from portal.history.palettes import Scheme
from portal.history.panes import FIXED, Pane, PaneKind
from portal.history.windows import FUNCTIONS, Window
from wms.core.models import User

#: At most so many lines of a table are shown; the rest is in the file.
TABLE_ROWS = 60
#: A page tells title, unit and lines beside the drawing.
_ON_PAGE = {"title": None, "showlegend": False, "margin": {"l": 48, "r": 14, "t": 20, "b": 36}}


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


def chart_data(
    pane: Pane, window: Window, user: User, *, zone: tzinfo = UTC, is_fitted: bool = False
) -> dict[str, Any]:
    """What the script draws: the figure, what of it is otherwise on a page, and its templates.

    Two queries.
    """
    drawn = read_to_draw(pane, window)
    figure = figure_of(
        drawn, marks_of(drawn, user).told, zone=zone, is_fitted=is_fitted
    ).to_plotly_json()
    del figure["layout"]["template"]
    styles = styles_of(drawn)
    return {
        "figure": figure,
        "on_page": _ON_PAGE,
        "templates": {scheme.value: template_of(scheme, styles) for scheme in Scheme},
        "summary": sentence_of(drawn),
    }


def chart_table(pane: Pane, window: Window) -> ChartTable:
    """The latest bins for readers of tables, latest first. One query."""
    drawn = read_pane(pane, window)
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
    if pane.kind == PaneKind.SPREAD:
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

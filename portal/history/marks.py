"""Marks of downtimes and changes in a history figure: lines, fields, and numbered flags.

Changes are those of configuration, and of sites that are closed and opened; only what the user may
see is marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from portal.history.clocks import Clock
from portal.history.pane_data import Drawn
from portal.history.windows import Window
from wms.core.models import User
from wms.history.annotations import Annotation, Annotations, annotations_between

#: Flags that would be nearer to each other could not be read.
_FLAG_PX = 26
#: At most so many marks are described on hovering over a flag.
_MAX_LINES = 8


@dataclass(slots=True)
class _Flag:
    """Marks from number `first` to number `last`, at the time of the first."""

    at_s: float
    first: int
    last: int
    words: list[str]


def marks_of(drawn: Drawn, user: User) -> Annotations:
    """Marks in the window that the user may see. One query."""
    window = drawn.window
    return annotations_between(user, since=window.since, until=window.until, site=window.part.site)


def shapes_of(marks: Sequence[Annotation], clock: Clock) -> list[dict[str, Any]]:
    """Plotly shapes: a dotted line for each moment, a field for each period."""
    return [_shape(mark, clock) for mark in marks]


def _shape(mark: Annotation, clock: Clock) -> dict[str, Any]:
    start = clock.written(mark.at.timestamp())
    end = start if mark.until is None else clock.written(mark.until.timestamp())
    shape = {"layer": "below", "yref": "paper", "y0": 0, "y1": 1, "x0": start, "x1": end}
    if mark.until is None:
        return {**shape, "type": "line", "line": {"width": 1, "dash": "dot"}}
    return {**shape, "type": "rect", "line": {"width": 0}}


def flags_of(
    marks: Sequence[Annotation], clock: Clock, window: Window, width_px: int
) -> list[dict[str, Any]]:
    """Plotly annotations with the numbers of the marks; close ones share a flag."""
    since_s = window.since.timestamp()
    px_per_s = width_px / window.length.total_seconds()
    flags: list[_Flag] = []
    for number, mark in enumerate(marks, start=1):
        at_s = max(mark.at.timestamp(), since_s)
        if flags and (at_s - flags[-1].at_s) * px_per_s < _FLAG_PX:
            flags[-1].last = number
            flags[-1].words.append(mark.words)
        else:
            flags.append(_Flag(at_s, number, number, [mark.words]))
    return [_annotation(flag, clock) for flag in flags]


def _annotation(flag: _Flag, clock: Clock) -> dict[str, Any]:
    numbers = f"{flag.first}" if flag.first == flag.last else f"{flag.first}\N{EN DASH}{flag.last}"
    # The drawing takes tags for its own.
    lines = [words.replace("<", "&lt;") for words in flag.words[:_MAX_LINES]]
    return {
        "x": clock.written(flag.at_s), "y": 1, "yref": "paper", "yanchor": "bottom",
        "showarrow": False, "borderpad": 1.5, "text": numbers, "hovertext": "<br>".join(lines),
    }  # fmt: skip

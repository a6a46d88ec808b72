"""Captions of history figures: meaning of a point, and a sentence on values and trends.

Also numbers as people read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from portal.history.pane_data import Column, Drawn, DrawnLine
from portal.history.panes import PaneKind, PaneLine
from portal.history.windows import FUNCTIONS

#: So many lines are told of, those with the most in them first.
_TOLD = 3
#: A change by less than this part is none; fewer values than that have no trend.
_CHANGE = 0.1
_FEWEST = 6


def legend_of(drawn: Drawn) -> str:
    """Meaning of a point: the function, and the width of its bin."""
    if drawn.pane.kind == PaneKind.COUNT:
        return f"sum in {drawn.bin_words}"
    if drawn.pane.kind == PaneKind.RATIO:
        return f"share in {drawn.bin_words}"
    if drawn.grouping:
        return f"mean of {drawn.bin_words}"
    if drawn.pane.kind == PaneKind.SPREAD:
        return f"of those that started in {drawn.bin_words}"
    return f"{FUNCTIONS[drawn.window.function]} of {drawn.bin_words}"


def sentence_of(drawn: Drawn) -> str:
    """Current value, minimum, maximum and trend of the largest lines that are not folded.

    Of a stack also those of the sum, which is its top line.
    """
    lines = [line for _, line in drawn.shown if not line.line.is_folded]
    largest = sorted(lines, key=lambda line: -max(_values(line), default=0.0))
    largest = [line for line in largest if _values(line)]
    if not largest:
        return "Nothing was sampled in this range."
    if not any(any(_values(line)) for line in largest):
        return "Nothing but zeros in this range."
    parts = [_line_sentence(drawn, line) for line in largest[:_TOLD]]
    if drawn.is_stacked and len(largest) > 1:
        parts.insert(0, _line_sentence(drawn, _sum_of(largest)))
    rest = len(largest[_TOLD:])
    more = f"; and {rest} more" if rest else ""
    sentence = "; ".join(parts) + more
    return f"{sentence[0].upper()}{sentence[1:]}."


def _sum_of(lines: Sequence[DrawnLine]) -> DrawnLine:
    """Line of the sums of all lines' values, where any has one."""
    bins = zip(*map(_main, lines), strict=True)
    known = [[value for value in values if value is not None] for values in bins]
    sums = [sum(values) if values else None for values in known]
    found = [value for value in sums if value is not None]
    line = PaneLine("sum", "all together", "")
    return DrawnLine(line, {"sum": sums}, min(found), max(found))


def _main(line: DrawnLine) -> Column:
    return next(iter(line.columns.values()))


def _values(line: DrawnLine) -> list[float]:
    return [value for value in _main(line) if value is not None]


def _line_sentence(drawn: Drawn, line: DrawnLine) -> str:
    values, unit = _values(line), drawn.pane.unit
    trend = trend_of(values)
    end = f", {trend}" if trend else ""
    label = line.line.label
    if drawn.pane.kind == PaneKind.COUNT:
        most = f"{figure(min(values))} to {figure(max(values))} in {drawn.bin_words}"
        return f"{label}: {figure(sum(values))} in all, {most}{end}"
    seconds = " s" if unit == "s" else ""
    now = f"{figure(values[-1])}{seconds} {_when(drawn, line)}"
    return f"{label}: {now}, {figure(line.low)} to {figure(line.high)}{seconds}{end}"


def _when(drawn: Drawn, line: DrawnLine) -> str:
    """Whether the last value is of the latest bin, of the end of the range, or before a gap."""
    if all(value is None for value in _main(line)[-2:]):
        return "when there was one last"
    is_live = drawn.window.now - drawn.window.until < timedelta(seconds=drawn.resolution.step_s)
    return f"in the last {drawn.bin_words}" if is_live else "at the end"


def trend_of(values: Sequence[float]) -> str:
    """Whether the last third is above the first one, or empty.

    Too few values have no trend, nor has one against which the last value speaks.
    """
    if len(values) < _FEWEST:
        return ""
    third = len(values) // 3
    first, last = sum(values[:third]) / third, sum(values[-third:]) / third
    if abs(last - first) <= _CHANGE * max(abs(first), abs(last)):
        return "steady"
    if (last - first) * (values[-1] - first) <= 0:
        return ""
    return "rising" if last > first else "falling"


def figure(value: float) -> str:
    """A number as people read it: thousands apart, three digits of what is small."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"

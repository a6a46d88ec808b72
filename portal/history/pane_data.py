"""Data of a pane in a window of time, read from the archives: bins and lines, as CSV and JSON.

Also widths of bins and times as text.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

from matching.round_robin_archives import Resolution, quantile
from portal.history.groupings import REST, GroupBy, Grouping, GroupLine, read_accounts, read_sites
from portal.history.panes import Pane, PaneKind, PaneLine
from portal.history.parts import WHOLE, Part
from portal.history.windows import Window
from wms.core.models import User
from wms.history.counting import COUNTED_MINUTES
from wms.history.selectors import Point, read_points, read_spread
from wms.sites.selectors import site_names_by_age

Column = Sequence[float | None]

#: What is counted in a bin is stored up to so long after its end.
_SETTLES = timedelta(seconds=30)
#: A pane of more lines than this leaves out those that were zero all the time.
_FEW_LINES = 5
#: The rest looks alike in every pane, however many lines are beside it.
_PLACE_OF_REST = 35
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))
_LEVEL: Mapping[str, Callable[[Point], float]] = {
    "avg": attrgetter("average"),
    "min": attrgetter("minimum"),
    "max": attrgetter("maximum"),
    "last": attrgetter("last"),
}
_COLUMNS = {
    PaneKind.LEVEL: tuple(_LEVEL),
    PaneKind.COUNT: ("sum",),
    PaneKind.SPREAD: ("value",),
    PaneKind.RATIO: ("share",),
}


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """Line with a value for each bin, None for a gap; by the names of its columns.

    All samples were between `low` and `high`.
    """

    line: PaneLine
    columns: Mapping[str, Column]
    low: float
    high: float

    @property
    def first_bin(self) -> int | None:
        """The place of the first bin with a value, if there is one."""
        values = next(iter(self.columns.values()))
        return next((at for at, value in enumerate(values) if value is not None), None)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Data of a pane in a window: the starts of its bins, and its lines.

    By `places` the line of a group looks alike in every pane; one without has that of its order.
    """

    pane: Pane
    window: Window
    resolution: Resolution
    starts: Sequence[int]
    lines: Sequence[DrawnLine]
    places: Mapping[str, int] = field(default_factory=dict)

    @property
    def grouping(self) -> Grouping | None:
        """Its grouping; None where it is not grouped, or cannot be."""
        return self.pane.grouping(self.window.group_by)

    @property
    def is_stacked(self) -> bool:
        """Whether its lines are parts of one sum."""
        return self.grouping is not None or self.pane.is_of_accounts

    @property
    def title(self) -> str:
        """Title, with what it is grouped by, and without its part."""
        return (
            f"{self.grouping.title} by {self.window.group_by}" if self.grouping else self.pane.title
        )

    @property
    def bin_words(self) -> str:
        """The width of a bin, as in `5 min`."""
        return step_words(self.resolution.step_s)

    @property
    def shown(self) -> list[tuple[int, DrawnLine]]:
        """The lines with anything to show, each with the place that its look follows from."""
        if self.grouping:
            return [
                (self.places.get(each.line.name, at), each) for at, each in enumerate(self.lines)
            ]
        can_be_zero = len(self.lines) <= _FEW_LINES
        return [
            (place, each)
            for place, each in enumerate(self.lines)
            if each.high or (can_be_zero and each.first_bin is not None)
        ]

    @property
    def file_stem(self) -> str:
        """File name without suffix: pane, site or frontend, time range and bin width."""
        window = self.window
        times = [f"{each.astimezone(UTC):%Y%m%dT%H%MZ}" for each in (window.since, window.until)]
        words = [
            "pilotage",
            self.pane.name,
            *filter(None, [self.grouping and f"by-{self.window.group_by}", self.part.file_word]),
        ]
        return "-".join([*words, *times, self.bin_words.replace(" ", "")])

    @property
    def part(self) -> Part:
        """Part that it shows: the chosen one, or all where the pane knows no parts of its kind."""
        return self.window.part if self.pane.is_of(self.window.part) else WHOLE


def step_words(step_s: int) -> str:
    """Width of a bin in its largest unit, as in `5 min`."""
    size, unit = next(each for each in _UNITS if step_s >= each[0])
    return f"{step_s / size:g} {unit}"


def read_pane(
    pane: Pane,
    window: Window,
    user: User,
    *,
    is_whole: bool = False,
    columns: Sequence[str] = (),
) -> Drawn:
    """Data of a pane to be drawn, or the `is_whole` bins as stored.

    One query; of groups two or three, of accounts two to five, with what the user may see.

    Of levels only those `columns`, or all. Unfinished bins of counts and spreads are left out where
    they are drawn: a line would always fall at its end.
    """
    resolution = window.resolution(is_whole=is_whole, is_daily=pane.is_of_accounts)
    # Of what the archive has forgotten there is not even a gap to be told.
    since = max(window.since, resolution.archive.oldest_start(window.now))
    starts: Sequence[int] = resolution.starts(since, window.until)
    if not is_whole and pane.kind != PaneKind.LEVEL and not pane.is_of_accounts:
        settled = (window.now - _SETTLES).timestamp()
        starts = [start for start in starts if start + resolution.step_s <= settled]
    if pane.is_of_accounts or pane.grouping(window.group_by):
        return _grouped(Drawn(pane, window, resolution, starts, ()), since, user)
    points = _points(pane, window, resolution, since)
    if pane.kind == PaneKind.RATIO:
        ratios = [_ratio_line(line, points, starts) for line in pane.lines_of(window.part)]
        return Drawn(pane, window, resolution, starts, ratios)
    counted = points.get(COUNTED_MINUTES, {})
    chosen = columns if pane.kind == PaneKind.LEVEL and columns else _COLUMNS[pane.kind]
    lines = [
        _drawn_line(line, chosen, points[line.series], counted, starts)
        for line in pane.lines_of(window.part)
    ]
    return Drawn(pane, window, resolution, starts, lines)


def read_to_draw(pane: Pane, window: Window, user: User) -> Drawn:
    """Data of a pane with the columns of its figure: with a mean also the maximum."""
    columns = ("avg", "max") if window.function == "avg" else (window.function,)
    return read_pane(pane, window, user, columns=columns)


def _grouped(drawn: Drawn, since: datetime, user: User) -> Drawn:
    """Pane with the lines of its groups, or of its accounts."""
    pane, window, starts = drawn.pane, drawn.window, drawn.starts
    span = {"since": since, "until": window.until, "now": window.now}
    grouping, is_level = drawn.grouping, pane.kind == PaneKind.LEVEL
    if grouping and grouping.quantity:
        found = read_sites(
            grouping, drawn.resolution, top=window.top, is_level=is_level, **span
        )  # fmt: skip
        counted: Mapping[int, Point] = {}
        if not is_level:
            counted = read_points([COUNTED_MINUTES], drawn.resolution, **span)[COUNTED_MINUTES]
    else:
        by = window.group_by if grouping else None
        found = read_accounts(
            user, by, starts, drawn.resolution.step_s, part=window.part, top=window.top
        )
        counted = {}
    lines = [_group_line(each, starts, counted, is_level) for each in found]
    of_sites = bool(grouping) and window.group_by == GroupBy.SITE
    return replace(
        drawn, lines=lines, places=_places([each.name for each in found]) if of_sites else {}
    )


def _places(names: Sequence[str]) -> dict[str, int]:
    """Places of sites by their age, whatever else a pane shows; removed sites come after them."""
    known = site_names_by_age()
    removed = sorted(set(names) - set(known) - {REST})
    return {name: at for at, name in enumerate([*known, *removed])} | {REST: _PLACE_OF_REST}


def _group_line(
    found: GroupLine, starts: Sequence[int], counted: Mapping[int, Point], is_level: bool
) -> DrawnLine:
    values = [
        _plain(found.values[start]) if start in found.values else (0 if start in counted else None)
        for start in starts
    ]
    line = PaneLine(found.name, found.label, found.series)
    return DrawnLine(line, {"avg" if is_level else "sum": values}, *_between(values))


def _points(
    pane: Pane, window: Window, resolution: Resolution, since: datetime
) -> dict[str, dict[int, Point]]:
    names = pane.series_of(window.part)
    span = {"since": since, "until": window.until, "now": window.now}
    if pane.kind == PaneKind.SPREAD:
        (name,) = names
        return {name: read_spread(name, resolution, **span)}
    return read_points(names, resolution, **span)


def _drawn_line(
    line: PaneLine,
    columns: Sequence[str],
    points: Mapping[int, Point],
    counted: Mapping[int, Point],
    starts: Sequence[int],
) -> DrawnLine:
    found = [points.get(start) for start in starts]
    if columns == _COLUMNS[PaneKind.COUNT]:
        # A bin is stored where there was something; without one it was nothing, or not counted.
        sums = [
            _plain(p.total) if p is not None else (0 if start in counted else None)
            for p, start in zip(found, starts, strict=True)
        ]
        return DrawnLine(line, {"sum": sums}, *_between(sums))
    if columns == _COLUMNS[PaneKind.SPREAD]:
        shares = [None if p is None else _share(line, p) for p in found]
        return DrawnLine(line, {"value": shares}, *_between(shares))
    known = [p for p in found if p is not None]
    return DrawnLine(
        line,
        {name: [None if p is None else _plain(_LEVEL[name](p)) for p in found] for name in columns},
        min((p.minimum for p in known), default=0.0),
        max((p.maximum for p in known), default=0.0),
    )


def _ratio_line(
    line: PaneLine, points: Mapping[str, Mapping[int, Point]], starts: Sequence[int]
) -> DrawnLine:
    """Share that ended well, in per cent of all that ended; a gap where nothing did."""

    def total(name: str, start: int) -> float:
        point = points[name].get(start)
        return 0.0 if point is None else point.total

    values: list[float | None] = []
    for start in starts:
        good = total(line.series, start)
        ended = good + sum(total(name, start) for name in line.others)
        values.append(_plain(100 * good / ended) if ended else None)
    return DrawnLine(line, {"share": values}, *_between(values))


def _between(values: Column) -> tuple[float, float]:
    known = [value for value in values if value is not None]
    return min(known, default=0.0), max(known, default=0.0)


def _share(line: PaneLine, point: Point) -> float | None:
    value = quantile(line.share, point.counts or (), minimum=point.minimum, maximum=point.maximum)
    return None if value is None else _plain(value)


def _plain(value: float) -> float:
    """Three digits after the point, and none where there is nothing to tell."""
    rounded = round(value, 3)
    return int(rounded) if rounded == int(rounded) else rounded


def stamp(start: float) -> str:
    """Time as in files: ISO 8601, in UTC."""
    return datetime.fromtimestamp(start, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_csv(out: Any, drawn: Drawn) -> None:
    """Write a line for each bin, oldest first; an empty cell for a gap."""
    writer = csv.writer(out)
    unit = drawn.pane.unit.replace(" ", "_")
    heads = [
        "_".join(filter(None, [each.line.name, column if len(each.columns) > 1 else "", unit]))
        for each in drawn.lines
        for column in each.columns
    ]
    writer.writerow(["start", "bin_s", *heads])
    cells = [column for each in drawn.lines for column in each.columns.values()]
    for start, *values in zip(drawn.starts, *cells, strict=True):
        row = ["" if value is None else value for value in values]
        writer.writerow([stamp(start), drawn.resolution.step_s, *row])


def as_json(drawn: Drawn) -> dict[str, Any]:
    """Data as JSON values: times once, and a list of values for each column of each line."""
    return {
        "pane": drawn.pane.name,
        "title": drawn.title,
        "unit": drawn.pane.unit,
        "kind": drawn.pane.kind.value,
        "site": drawn.part.site,
        "frontend": drawn.part.frontend,
        "group_by": (drawn.window.group_by or "") if drawn.grouping else "",
        "from": stamp(drawn.window.since.timestamp()),
        "to": stamp(drawn.window.until.timestamp()),
        "archive": drawn.resolution.archive.name,
        "bin_s": drawn.resolution.step_s,
        "start": [stamp(start) for start in drawn.starts],
        "lines": [
            {
                "name": each.line.name,
                "label": each.line.label,
                "is_rest": each.line.name == REST,
                "series": each.line.series,
                **{column: list(values) for column, values in each.columns.items()},
            }
            for each in drawn.lines
        ],
    }

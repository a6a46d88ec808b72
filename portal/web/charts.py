"""The history charts: what is in each, and its data for the script and for people."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from matching.rings import ARCHIVES, Archive, archive_named
from portal.web.looks import look_of
from wms.core.errors import NotFound
from wms.dags.states import DagState
from wms.history.selectors import Point, read_series
from wms.jobs.states import TERMINAL as JOB_TERMINAL
from wms.jobs.states import JobState
from wms.pilots.states import TERMINAL as PILOT_TERMINAL
from wms.pilots.states import PilotState

#: At most so many lines of a table are shown; the rest is in the file.
TABLE_ROWS = 60


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart: things by state. The folded states only grow, so they are shown when asked for.

    `source` is the first part of the series' names, where that is not the chart's own name.
    """

    name: str
    title: str
    states: tuple[str, ...]
    folded: frozenset[str] = frozenset()
    source: str = ""

    @property
    def series(self) -> dict[str, str]:
        """The series of each state."""
        return {state: f"{self.source or self.name}.{state}" for state in self.states}


PANELS = {
    panel.name: panel
    for panel in (
        Panel("jobs", "Jobs by state", tuple(JobState.values), JOB_TERMINAL),
        Panel(
            "dags",
            "DAGs by state",
            tuple(DagState.values),
            frozenset({DagState.COMPLETED.value, DagState.REMOVED.value, DagState.FAILED.value}),
        ),
        Panel("pilots", "Pilots by state", tuple(PilotState.values), PILOT_TERMINAL),
        Panel("negotiation", "DAGs in a negotiation", ("requests", "matches", "unmatched")),
        Panel("duration", "Seconds of a negotiation", ("seconds",), source="negotiation"),
    )
}


@dataclass(frozen=True, slots=True)
class ChartTable:
    """The latest bins as lines of a table; one cell for each state, None for a gap."""

    states: Sequence[str]
    rows: Sequence[tuple[datetime, Sequence[Point | None]]]
    total: int


def find_panel(name: str) -> Panel:
    """The chart of this name. Raises NotFound."""
    if name not in PANELS:
        raise NotFound(f"There is no chart {name!r}.")
    return PANELS[name]


def find_archive(name: str) -> Archive:
    """The archive of this name. Raises NotFound."""
    try:
        return archive_named(name)
    except KeyError:
        known = ", ".join(archive.name for archive in ARCHIVES)
        raise NotFound(f"There is no archive {name!r}; there are {known}.") from None


def chart_data(panel: Panel, archive: Archive, *, now: datetime) -> dict[str, Any]:
    """What the script draws. One query; a series that has nothing but zeros is left out."""
    points = _read(panel, archive, now)
    return {
        "title": panel.title,
        "archive": archive.name,
        "range": archive.label,
        "step_s": archive.step_s,
        "from": archive.oldest_start(now).isoformat(),
        "to": now.isoformat(timespec="seconds"),
        "series": [
            {
                "state": state,
                "tone": look_of(state).tone,
                "is_folded": state in panel.folded,
                "start": [_stamp(point.start) for point in points[state]],
                "min": [point.minimum for point in points[state]],
                "avg": [round(point.average, 3) for point in points[state]],
                "max": [point.maximum for point in points[state]],
            }
            for state in panel.states
            if any(point.maximum for point in points[state])
        ],
    }


def chart_table(panel: Panel, archive: Archive, *, now: datetime) -> ChartTable:
    """The latest bins for readers of tables, latest first."""
    points = _read(panel, archive, now)
    states = [state for state in panel.states if any(p.maximum for p in points[state])]
    rows = list(_rows(points, states))
    return ChartTable(states=states, rows=rows[:TABLE_ROWS], total=len(rows))


def write_csv(out: Any, panel: Panel, archive: Archive, *, now: datetime) -> None:
    """All bins of a chart, oldest first, times in UTC."""
    points = _read(panel, archive, now)
    writer = csv.writer(out)
    functions = ("min", "avg", "max")
    writer.writerow(["start_utc", *(f"{s}_{f}" for s in panel.states for f in functions)])
    for start, cells in reversed(list(_rows(points, panel.states))):
        figures = [figure for cell in cells for figure in _figures(cell)]
        writer.writerow([_stamp(start), *figures])


def _figures(cell: Point | None) -> tuple[Any, Any, Any]:
    return ("", "", "") if cell is None else (cell.minimum, round(cell.average, 3), cell.maximum)


def _read(panel: Panel, archive: Archive, now: datetime) -> dict[str, list[Point]]:
    names = panel.series
    points = read_series(list(names.values()), archive=archive.name, now=now)
    return {state: points[name] for state, name in names.items()}


def _rows(
    points: dict[str, list[Point]], states: Sequence[str]
) -> Iterable[tuple[datetime, list[Point | None]]]:
    by_start = {state: {point.start: point for point in points[state]} for state in states}
    starts = sorted({start for bins in by_start.values() for start in bins}, reverse=True)
    for start in starts:
        yield start, [by_start[state].get(start) for state in states]


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

"""Selectors of series of the round-robin archives: bins, points of several bins, spreads.

Every point has minimum, average, maximum and last value; those of a spread also have the number of
values in each class.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import connection

from matching.round_robin_archives import ARCHIVES, Resolution, archive_named
from wms.history.sql import READ_BINS, READ_POINTS, READ_RANKED


class Point(NamedTuple):
    """One bin of a series, or some of them taken together; `average` is over its samples."""

    start_s: int
    minimum: float
    average: float
    maximum: float
    samples: int
    last: float
    total: float
    counts: Sequence[int] | None = None

    @property
    def start(self) -> datetime:
        """Start of the point."""
        return datetime.fromtimestamp(self.start_s, UTC)


def read_series(
    names: Sequence[str], *, archive: str, now: datetime, since: datetime | None = None
) -> dict[str, list[Point]]:
    """The bins of each series, oldest first, of the ring's last turn; gaps stay gaps.

    One query. Raises KeyError for an unknown archive.
    """
    ring = archive_named(archive)
    oldest = ring.oldest_start(now)
    first = max(oldest, since) if since is not None else oldest
    points = _read(READ_BINS, names, Resolution(ring), first, ring.end_of(now))
    return {name: list(found.values()) for name, found in points.items()}


def read_points(
    names: Sequence[str], resolution: Resolution, *, since: datetime, until: datetime, now: datetime
) -> dict[str, dict[int, Point]]:
    """The points of each series by when they begin, in seconds of the Unix epoch.

    All that begin from the one of `since` on and before `until`; without what is in the classes of
    spreads. One query.
    """
    first = _first(resolution, since, until, now)
    return _read(
        READ_BINS if resolution.factor == 1 else READ_POINTS, names, resolution, first, until
    )


def read_spread(
    name: str, resolution: Resolution, *, since: datetime, until: datetime, now: datetime
) -> dict[int, Point]:
    """The points of a spread, with how many values were in each class. One query."""
    first = _first(resolution, since, until, now)
    found = _read(READ_BINS, [name], resolution, first, until)[name]
    together: dict[int, list[Point]] = defaultdict(list)
    for start_s, point in found.items():
        together[start_s // resolution.step_s * resolution.step_s].append(point)
    return {start_s: _joined(start_s, parts) for start_s, parts in together.items()}


class RankedSeries(NamedTuple):
    """Values of one of the largest series, by where their points begin; or the sum of all others.

    A rest has no name, and stands for `members` series.
    """

    name: str
    values: dict[int, float]
    members: int = 1


def read_ranked(
    quantity: str,
    resolution: Resolution,
    *,
    since: datetime,
    until: datetime,
    now: datetime,
    top: int,
    is_level: bool,
) -> list[RankedSeries]:
    """The `top` sites with most of a quantity, largest first, then the rest. One query.

    Values are means of levels, sums of counts. Sites that had none of it are left out.
    """
    parameters: dict[str, Any] = {
        "pattern": f"{quantity}@%", "archive": ARCHIVES.index(resolution.archive),
        "since": _first(resolution, since, until, now), "until": until,
        "step": resolution.step_s, "top": top, "is_level": is_level,
    }  # fmt: skip
    found: dict[int, RankedSeries] = {}
    with connection.cursor() as cursor:
        cursor.execute(READ_RANKED, parameters)
        for place, name, start_s, value, last in cursor.fetchall():
            is_rest = place > top
            old = found.get(place)
            known = old.values if old else {}
            known[start_s] = value
            members = max(old.members if old else 1, last - top) if is_rest else 1
            shown = "" if is_rest else name.removeprefix(f"{quantity}@")
            found[place] = RankedSeries(shown, known, members)
    return list(found.values())


def _first(resolution: Resolution, since: datetime, until: datetime, now: datetime) -> datetime:
    """Start of the first bin; older bins of the ring are of an earlier turn."""
    aligned = datetime.fromtimestamp(resolution.starts(since, until).start, UTC)
    return max(aligned, resolution.archive.oldest_start(now))


def _read(
    sql: str, names: Sequence[str], resolution: Resolution, since: datetime, until: datetime
) -> dict[str, dict[int, Point]]:
    found: dict[str, dict[int, Point]] = {name: {} for name in names}
    parameters: dict[str, Any] = {
        "names": list(names),
        "archive": ARCHIVES.index(resolution.archive),
        "since": since,
        "until": until,
        "step": resolution.step_s,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        for name, *values in cursor.fetchall():
            found[name][values[0]] = Point(*values)
    return found


def _joined(start_s: int, points: Sequence[Point]) -> Point:
    """Points of a spread taken together, oldest first."""
    classes = [point.counts for point in points if point.counts]
    longest = max(map(len, classes), default=0)
    samples, total = sum(point.samples for point in points), sum(point.total for point in points)
    return Point(
        start_s=start_s,
        minimum=min(point.minimum for point in points),
        average=total / samples,
        maximum=max(point.maximum for point in points),
        samples=samples,
        last=points[-1].last,
        total=total,
        counts=[
            sum(each[place] for each in classes if place < len(each)) for place in range(longest)
        ],
    )

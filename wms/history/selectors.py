"""Reading the rings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from django.db import connection

from matching.rings import ARCHIVES, Resolution, archive_named


class Point(NamedTuple):
    """One bin of a series, or some of them taken together; `average` is over its samples."""

    start: datetime
    minimum: float
    average: float
    maximum: float
    samples: int
    last: float
    total: float
    counts: Sequence[int] | None = None


class _Row(NamedTuple):
    """A bin as it is stored; its start in seconds of the Unix epoch."""

    name: str
    start: int
    samples: int
    total: float
    minimum: float
    maximum: float
    last: float
    counts: Sequence[int] | None


_READ = """
SELECT series.name, extract(epoch FROM bin.start)::bigint, bin.count, bin.total, bin.minimum,
    bin.maximum, bin.last, bin.counts
FROM history_series AS series
JOIN history_bin AS bin ON bin.series_id = series.id
WHERE series.name = ANY(%(names)s) AND bin.archive = %(archive)s
    AND bin.start >= %(since)s AND bin.start < %(until)s
ORDER BY bin.start
"""


def read_series(
    names: Sequence[str], *, archive: str, now: datetime, since: datetime | None = None
) -> dict[str, list[Point]]:
    """The bins of each series, oldest first, of the ring's last turn; gaps stay gaps.

    One query. Raises KeyError for an unknown archive.
    """
    ring = archive_named(archive)
    oldest = ring.oldest_start(now)
    first = max(oldest, since) if since is not None else oldest
    found: dict[str, list[Point]] = {name: [] for name in names}
    for row in _rows(names, Resolution(ring), first, now, is_last_included=True):
        found[row.name].append(_point(row))
    return found


def read_points(
    names: Sequence[str], resolution: Resolution, *, since: datetime, until: datetime, now: datetime
) -> dict[str, dict[int, Point]]:
    """The points of each series by when they begin, in seconds of the Unix epoch.

    All that begin from the one of `since` on and before `until`. One query.
    """
    starts = resolution.starts(since, until)
    oldest = resolution.archive.oldest_start(now)
    first = max(datetime.fromtimestamp(starts.start, UTC), oldest)
    step_s = resolution.step_s
    rows = _rows(names, resolution, first, until)
    found: dict[str, dict[int, Point]] = {name: {} for name in names}
    if resolution.factor == 1:
        for row in rows:
            found[row.name][row.start] = _point(row)
        return found
    together: dict[tuple[str, int], list[_Row]] = defaultdict(list)
    for row in rows:
        together[row.name, row.start // step_s * step_s].append(row)
    for (name, start), parts in together.items():
        found[name][start] = _point(_joined(start, parts))
    return found


def _rows(
    names: Sequence[str],
    resolution: Resolution,
    since: datetime,
    until: datetime,
    *,
    is_last_included: bool = False,
) -> Iterable[_Row]:
    sql = _READ.replace("bin.start <", "bin.start <=") if is_last_included else _READ
    number = ARCHIVES.index(resolution.archive)
    with connection.cursor() as cursor:
        cursor.execute(
            sql, {"names": list(names), "archive": number, "since": since, "until": until}
        )
        return [_Row(*row) for row in cursor.fetchall()]


def _joined(start: int, rows: Sequence[_Row]) -> _Row:
    """Bins of a series taken together, oldest first."""
    classes = [row.counts for row in rows if row.counts]
    longest = max(map(len, classes), default=0)
    return _Row(
        name=rows[0].name,
        start=start,
        samples=sum(row.samples for row in rows),
        total=sum(row.total for row in rows),
        minimum=min(row.minimum for row in rows),
        maximum=max(row.maximum for row in rows),
        last=rows[-1].last,
        counts=[
            sum(each[place] for each in classes if place < len(each)) for place in range(longest)
        ]
        or None,
    )


def _point(row: _Row) -> Point:
    start = datetime.fromtimestamp(row.start, UTC)
    average = row.total / row.samples
    return Point(
        start, row.minimum, average, row.maximum, row.samples, row.last, row.total, row.counts
    )

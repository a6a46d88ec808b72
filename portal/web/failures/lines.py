"""Lines of failure pages: groups with trend bars, failures of a group.

Also the matrix of sites and groups, with the fill level of each count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import QueryDict

from wms.failures.failure_reports import FailureReport
from wms.failures.models import Failure
from wms.failures.selectors import CountedGroup, Trend
from wms.failures.site_counts import Matrix

_NOTHING = Trend(())


@dataclass(frozen=True, slots=True)
class Bar:
    """One hour of a trend: its place and height, in percent."""

    x: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group in a list, with its trend."""

    hit: CountedGroup
    trend: Trend

    @property
    def bars(self) -> list[Bar]:
        """Bars of the hours with failures."""
        return bars_of(self.trend)


def bars_of(trend: Trend) -> list[Bar]:
    """A bar for each hour with failures, scaled to the highest."""
    width = 100 / max(1, len(trend.counts))
    heights = [100 * count / (trend.most or 1) for count in trend.counts]
    return [
        # What happened at all is seen.
        Bar(round(place * width, 2), round(100 - max(height, 8), 1), round(max(height, 8), 1))
        for place, height in enumerate(heights)
        if height
    ]


def lines_of(hits: Sequence[CountedGroup], trends: Mapping[int, Trend]) -> list[GroupLine]:
    """Lines of the list of groups."""
    return [GroupLine(hit, trends.get(hit.group.pk, _NOTHING)) for hit in hits]


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """Cell of the matrix: the count, the fill level of its mark (0 to 4), and its link."""

    count: int
    level: int
    query: str


def cells_of(matrix: Matrix, query: QueryDict) -> list[tuple[str, list[MatrixCell], int, int]]:
    """Lines of the matrix: site, a cell for each group, other groups, total."""
    most = max((count for row in matrix.rows for count in row.counts), default=0)
    lines = []
    for row in matrix.rows:
        at = QueryDict(mutable=True)
        at["within"] = query.get("within") or "24h"
        if row.site:
            at["site"] = row.site
        cells = [MatrixCell(count, level_of(count, most), at.urlencode()) for count in row.counts]
        lines.append((row.site, cells, row.other, row.total))
    return lines


def level_of(count: int, most: int) -> int:
    """Fill level from 0 for none to 4 for about the maximum, on a logarithmic scale."""
    if not count:
        return 0
    part = count / most
    return 1 + sum(part >= step for step in (0.03, 0.1, 0.33))


@dataclass(frozen=True, slots=True)
class FailureLine:
    """One failure of a group with its message; None if its event is gone."""

    failure: Failure
    sighting: FailureReport | None


def failure_lines(
    failures: Sequence[Failure], sighting: Mapping[int, FailureReport]
) -> list[FailureLine]:
    """Lines of a group's page."""
    return [FailureLine(failure, sighting.get(failure.pk)) for failure in failures]

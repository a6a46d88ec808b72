"""Reading the rings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from matching.rings import ARCHIVES, archive_named
from wms.history.models import Bin


@dataclass(frozen=True, slots=True)
class Point:
    """One bin of a series; `average` is over its samples, `count` of them."""

    start: datetime
    minimum: float
    average: float
    maximum: float
    count: int


def read_series(
    names: Sequence[str], *, archive: str, now: datetime, since: datetime | None = None
) -> dict[str, list[Point]]:
    """The bins of each series, oldest first, of the ring's last turn; gaps stay gaps.

    One query. Raises KeyError for an unknown archive.
    """
    ring = archive_named(archive)
    oldest = max(ring.oldest_start(now), since) if since is not None else ring.oldest_start(now)
    bins = (
        Bin.objects.filter(
            series__name__in=names, archive=ARCHIVES.index(ring), start__gte=oldest, start__lte=now
        )
        .order_by("start")
        .values_list("series__name", "start", "minimum", "total", "maximum", "count")
    )
    points: dict[str, list[Point]] = defaultdict(list)
    for name, start, minimum, total, maximum, count in bins:
        points[name].append(Point(start, minimum, total / count, maximum, count))
    return {name: points.get(name, []) for name in names}

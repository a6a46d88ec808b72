"""Success of attempts at a site in the last day and week, from the counts of the history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from matching.round_robin_archives import Resolution, archive_named
from wms.history.selectors import read_points

_DAY, _WEEK = timedelta(days=1), timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Success:
    """Attempts that ended in some time: with a job that is done, and otherwise."""

    done: int
    failed: int

    @property
    def ended(self) -> int:
        """All of them."""
        return self.done + self.failed

    @property
    def percent(self) -> float | None:
        """Share that succeeded; None where none ended."""
        return 100 * self.done / self.ended if self.ended else None


@dataclass(frozen=True, slots=True)
class RecentSuccess:
    """Success of the last day and the last week, to the whole hour before their beginning."""

    day: Success
    week: Success


def success_at(site_name: str, now: datetime) -> RecentSuccess:
    """Success of attempts at a site. One query."""
    done, failed = f"throughput.done@{site_name}", f"failures@{site_name}"
    points = read_points(
        [done, failed], Resolution(archive_named("1h")), since=now - _WEEK, until=now, now=now
    )

    def total(name: str, back: timedelta) -> int:
        first = (now - back).replace(minute=0, second=0, microsecond=0).timestamp()
        return round(sum(p.total for start, p in points[name].items() if start >= first))

    day, week = (Success(total(done, back), total(failed, back)) for back in (_DAY, _WEEK))
    return RecentSuccess(day, week)

"""Round-robin archives of the history, as in RRDtool: bins and slots in a ring, by resolution.

Also which archive, and how many of its bins for a point, serve a range of time, and quantiles from
the classes of a spread.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Archive:
    """A ring of `slots` bins of `step_s` seconds each."""

    name: str
    label: str
    step_s: int
    slots: int

    def start_of(self, moment: datetime) -> datetime:
        """Start of the bin of this time. Bins are aligned to the Unix epoch."""
        epoch_s = int(moment.timestamp())
        return datetime.fromtimestamp(epoch_s - epoch_s % self.step_s, tz=UTC)

    def end_of(self, moment: datetime) -> datetime:
        """End of the bin of this time."""
        return self.start_of(moment) + timedelta(seconds=self.step_s)

    def slot_of(self, moment: datetime) -> int:
        """Slot of the bin of this time in the ring; slots repeat after one full round."""
        return int(moment.timestamp()) // self.step_s % self.slots

    def slots_of(self, since: datetime, until: datetime) -> list[int]:
        """Slots of all bins from that of `since` to that of `until`, each once."""
        first, last = int(since.timestamp()) // self.step_s, int(until.timestamp()) // self.step_s
        return [number % self.slots for number in range(first, min(last, first + self.slots) + 1)]

    def oldest_start(self, now: datetime) -> datetime:
        """Start of the oldest bin that the ring still holds at `now`."""
        return self.start_of(now) - timedelta(seconds=self.step_s * (self.slots - 1))


_DAY_S = 86_400

#: One minute for a day, five minutes for a week, an hour for three months, a day for five years.
ARCHIVES = (
    Archive("1min", "1 day", 60, _DAY_S // 60),
    Archive("5min", "1 week", 300, 7 * _DAY_S // 300),
    Archive("1h", "3 months", 3_600, 92 * 24),
    Archive("1d", "5 years", _DAY_S, 5 * 365 + 2),
)


def archive_named(name: str) -> Archive:
    """Archive of this name. Raises KeyError."""
    return {archive.name: archive for archive in ARCHIVES}[name]


@dataclass(frozen=True, slots=True)
class Resolution:
    """Archive to read, and how many of its bins make one point."""

    archive: Archive
    factor: int = 1

    @property
    def step_s(self) -> int:
        """Width of a point in seconds."""
        return self.archive.step_s * self.factor

    def starts(self, since: datetime, until: datetime) -> range:
        """Start of each point from `since` to `until`, in seconds of the Unix epoch."""
        first = int(since.timestamp()) // self.step_s * self.step_s
        return range(first, math.ceil(until.timestamp()), self.step_s)


#: Widths of points that people read with ease, in seconds.
_NICE_S = (
    60, 120, 180, 300, 600, 900, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    2 * 86_400, 7 * 86_400, 14 * 86_400, 28 * 86_400,
)  # fmt: skip


def resolution_for(
    since: datetime, until: datetime, *, now: datetime, most: int, archive: Archive | None = None
) -> Resolution:
    """Finest archive that reaches back to `since`, or the given one, with bins per point.

    Bins are combined so that at most `most` points are left.
    """
    # A range of a whole turn begins in the bin that is being overwritten.
    reaching = (each for each in ARCHIVES if since >= each.oldest_start(now) - _steps(each, 1))
    chosen = archive or next(reaching, ARCHIVES[-1])
    first = max(since, chosen.oldest_start(now))
    # Points are aligned, so one more may be touched than fit into the range.
    least_s = (until - first).total_seconds() / max(1, most - 1)
    nice = (step_s for step_s in _NICE_S if step_s >= least_s and step_s % chosen.step_s == 0)
    step_s = next(nice, chosen.step_s * math.ceil(least_s / chosen.step_s))
    return Resolution(chosen, step_s // chosen.step_s)


def _steps(archive: Archive, count: int) -> timedelta:
    return timedelta(seconds=archive.step_s * count)


#: Classes of a spread: below one, then each this much wider than the one before.
SPREAD_RATIO = 1.1


def quantile(
    share: float, counts: Sequence[int], *, minimum: float, maximum: float
) -> float | None:
    """Value that this share of all values does not exceed, to within a class's width.

    It is interpolated within the class by rank, and never outside of `minimum` to `maximum`.
    """
    total = sum(counts)
    if not total:
        return None
    rank = max(1, math.ceil(share * total))
    sums = list(accumulate(counts))
    place = bisect_left(sums, rank)
    upper = SPREAD_RATIO**place
    lower = upper / SPREAD_RATIO if place else 0.0
    before = sums[place] - counts[place]
    value = lower + (upper - lower) * (rank - before) / counts[place]
    return min(max(value, minimum), maximum)

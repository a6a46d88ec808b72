"""Round-robin archives: which bin of which ring a moment falls into (after RRDtool)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Archive:
    """A ring of `slots` bins of `step_s` seconds each."""

    name: str
    label: str
    step_s: int
    slots: int

    def start_of(self, moment: datetime) -> datetime:
        """When the bin of this moment begins. Bins are aligned to the Unix epoch."""
        epoch_s = int(moment.timestamp())
        return datetime.fromtimestamp(epoch_s - epoch_s % self.step_s, tz=UTC)

    def slot_of(self, moment: datetime) -> int:
        """The place of the moment's bin in the ring; the same again after one full turn."""
        return int(moment.timestamp()) // self.step_s % self.slots

    def oldest_start(self, now: datetime) -> datetime:
        """When the oldest bin begins that the ring still holds at `now`."""
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
    """The archive of this name. Raises KeyError."""
    return {archive.name: archive for archive in ARCHIVES}[name]

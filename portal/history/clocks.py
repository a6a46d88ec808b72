"""Time zone of a figure as an offset from UTC: plotly.js knows no zones, so times are converted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from portal.history.windows import Window


@dataclass(frozen=True, slots=True)
class Clock:
    """Constant offset from UTC: that of a zone at the end of a window."""

    offset_s: int

    @classmethod
    def of(cls, zone: tzinfo, window: Window) -> Clock:
        """Offset of a zone at the end of the window."""
        offset = window.until.astimezone(zone).utcoffset() or timedelta()
        # Some zones of long ago were seconds away; times are told in whole minutes.
        return cls(round(offset.total_seconds() / 60) * 60)

    @property
    def name(self) -> str:
        """Name of the zone, as in `UTC`, `UTC+1`, `UTC-3:30`."""
        if not self.offset_s:
            return "UTC"
        hours, minutes = divmod(abs(self.offset_s) // 60, 60)
        rest = f":{minutes:02}" if minutes else ""
        return f"UTC{'-' if self.offset_s < 0 else '+'}{hours}{rest}"

    def written(self, moment_s: float) -> str:
        """Time, given in seconds of the Unix epoch, as text in this zone for a figure."""
        return self.all_written([moment_s])[0]

    def all_written(self, moments_s: Iterable[float]) -> list[str]:
        """Times as text in this zone for a figure."""
        zone = UTC if not self.offset_s else timezone(timedelta(seconds=self.offset_s))
        return [
            datetime.fromtimestamp(each, zone).strftime("%Y-%m-%d %H:%M:%S") for each in moments_s
        ]

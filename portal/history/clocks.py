"""Time zone of a figure: plotly.js knows no zones, so times are converted before they are drawn.

An axis cannot jump, so its times have one offset, that of the end of the window. Where the zone's
offset changes within the window, the ticks have a text of their own, each in the offset of its
instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

from portal.history.windows import Window

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
#: Widths between ticks that people read with ease; longer ones are months.
_WIDTHS = (
    5 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE, _HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR,
    _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY,
)  # fmt: skip
_MONTHS = (1, 2, 3, 6, 12)


@dataclass(frozen=True, slots=True)
class Tick:
    """Tick of an axis: its instant, in seconds of the Unix epoch, and its text."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Clock:
    """Offset from UTC of all times on an axis: that of a zone at the end of a window."""

    offset_s: int
    zone: tzinfo = UTC

    @classmethod
    def of(cls, zone: tzinfo, window: Window) -> Clock:
        """Offset of a zone at the end of the window."""
        return cls(_offset_s(window.until.astimezone(zone)), zone)

    @property
    def name(self) -> str:
        """Name of the zone at the end, as in `UTC`, `UTC+1`, `UTC-3:30`."""
        return _name(self.offset_s)

    def names_in(self, window: Window) -> str:
        """Name of the zone, with that at the beginning where it was another."""
        first = _name(_offset_s(window.since.astimezone(self.zone)))
        if first == self.name and not self.changes_in(window):
            return self.name
        return f"{first}, then {self.name}" if first != self.name else f"{self.name} and others"

    def changes_in(self, window: Window) -> bool:
        """Whether an instant of the window has another offset than its end."""
        steps = int(window.length / _DAY) + 1
        moments = (window.since + step * _DAY for step in range(steps))
        return any(_offset_s(each.astimezone(self.zone)) != self.offset_s for each in moments)

    def written(self, moment_s: float) -> str:
        """Time, given in seconds of the Unix epoch, as text on the axis of a figure."""
        return self.all_written([moment_s])[0]

    def all_written(self, moments_s: Iterable[float]) -> list[str]:
        """Times as text on the axis of a figure."""
        zone = UTC if not self.offset_s else timezone(timedelta(seconds=self.offset_s))
        return [
            datetime.fromtimestamp(each, zone).strftime("%Y-%m-%d %H:%M:%S") for each in moments_s
        ]

    def told(self, moment_s: float) -> str:
        """Time as people of the zone read it, with the zone's name at that instant."""
        local = datetime.fromtimestamp(moment_s, UTC).astimezone(self.zone)
        return f"{local:%Y-%m-%d %H:%M:%S} {_name(_offset_s(local))}"

    def ticks(self, window: Window, most: int) -> list[Tick]:
        """At most some `most` ticks at round times of the zone, the day below where it begins."""
        ticks: list[Tick] = []
        day = None
        for at in self._round_times(window, most):
            local = at.astimezone(self.zone)
            is_whole_day = window.length > most * _DAY
            text = f"{local:%-d %b}" if is_whole_day else f"{local:%H:%M}"
            below = f"{local:%Y}" if is_whole_day else f"{local:%Y-%m-%d}"
            ticks.append(Tick(at.timestamp(), text if below == day else f"{text}<br>{below}"))
            day = below
        return ticks

    def _round_times(self, window: Window, most: int) -> Iterator[datetime]:
        width = next((each for each in _WIDTHS if window.length <= most * each), None)
        if width is None:
            yield from self._months(window, most)
        elif width >= _DAY:
            yield from self._days(window, width.days)
        else:
            # Round by the zone's own clock: an hour that comes twice has its ticks twice.
            minutes = width // _MINUTE
            at = window.since.replace(minute=0, second=0, microsecond=0)
            while at < window.until:
                local = at.astimezone(self.zone)
                if at >= window.since and (60 * local.hour + local.minute) % minutes == 0:
                    yield at
                at += min(width, 15 * _MINUTE)

    def _days(self, window: Window, every: int) -> Iterator[datetime]:
        first = window.since.astimezone(self.zone).date()
        for number in range(window.length.days + 2):
            day = first + timedelta(days=number)
            if day.toordinal() % every == 0:
                yield from self._midnight(day, window)

    def _months(self, window: Window, most: int) -> Iterator[datetime]:
        months = window.length / (30 * _DAY)
        every = next((each for each in _MONTHS if months <= most * each), _MONTHS[-1])
        first = window.since.astimezone(self.zone).date().replace(day=1)
        for number in range(int(months) + 3):
            place = first.month - 1 + number
            if place % every == 0:
                yield from self._midnight(date(first.year + place // 12, place % 12 + 1, 1), window)

    def _midnight(self, day: date, window: Window) -> Iterator[datetime]:
        at = datetime(day.year, day.month, day.day, tzinfo=self.zone).astimezone(UTC)
        if window.since <= at < window.until:
            yield at


def _offset_s(local: datetime) -> int:
    """Offset from UTC in whole minutes: some zones of long ago were seconds away."""
    offset = local.utcoffset() or timedelta()
    return round(offset.total_seconds() / 60) * 60


def _name(offset_s: int) -> str:
    if not offset_s:
        return "UTC"
    hours, minutes = divmod(abs(offset_s) // 60, 60)
    rest = f":{minutes:02}" if minutes else ""
    return f"UTC{'-' if offset_s < 0 else '+'}{hours}{rest}"

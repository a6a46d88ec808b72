"""Downtime calendar page: a row for each site, with its downtimes drawn over the days."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from wms.sites.downtimes.models import Downtime

#: Stretches that can be chosen, in days.
STRETCHES = (7, 28, 91)
USUAL_DAYS = 28
#: No more windows are drawn at once.
MOST = 500
#: Of a window that lasts minutes something is to be seen.
_LEAST_WIDTH = 0.4
_LANE_HEIGHT = 12
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DayRange:
    """Range of days in a time zone: the first day, and their number."""

    first: date
    days: int
    zone: ZoneInfo

    @property
    def start(self) -> datetime:
        """First moment of the range."""
        return datetime.combine(self.first, time.min, tzinfo=self.zone).astimezone(UTC)

    @property
    def end(self) -> datetime:
        """First moment after the range."""
        last = self.first + self.days * _DAY
        return datetime.combine(last, time.min, tzinfo=self.zone).astimezone(UTC)

    def place(self, moment: datetime) -> float:
        """Position of a moment from 0 to 100; moments outside are put at the ends."""
        part = (moment - self.start) / (self.end - self.start)
        return round(100 * min(1.0, max(0.0, part)), 3)


@dataclass(frozen=True, slots=True)
class Day:
    """Day on the scale above the rows. `label` is empty where there is no room for one."""

    day: date
    x: float
    width: float
    label: str
    is_today: bool
    is_weekend: bool


@dataclass(frozen=True, slots=True)
class Window:
    """A drawn downtime: its lane, its position, and its lead time."""

    downtime: Downtime
    y: int
    x: float
    width: float
    lead_x: float
    lead_width: float
    overlaps: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A site with its drawn downtimes. Overlapping ones are in different lanes."""

    site: str
    windows: Sequence[Window]
    height: int


def day_range_of(asked_first: str, asked_days: str, *, now: datetime, zone: ZoneInfo) -> DayRange:
    """Range of days in the address; by default four weeks from last Monday on."""
    days = int(asked_days) if asked_days in {str(each) for each in STRETCHES} else USUAL_DAYS
    today = now.astimezone(zone).date()
    try:
        first = date.fromisoformat(asked_first)
        is_drawable = 1 < first.year < 9998
    except ValueError:
        is_drawable = False
    if not is_drawable:
        first = today - timedelta(days=today.weekday())
    return DayRange(first, days, zone)


def days_of(stretch: DayRange, now: datetime) -> list[Day]:
    """Days of the scale. In a long range only Mondays have labels."""
    today = now.astimezone(stretch.zone).date()
    days = [stretch.first + number * _DAY for number in range(stretch.days)]
    return [
        Day(
            day=day,
            x=round(100 * number / stretch.days, 3),
            width=round(100 / stretch.days, 3),
            label=_label(day, number, stretch.days) or _today(day == today, number),
            is_today=day == today,
            is_weekend=day.weekday() >= 5,
        )
        for number, day in enumerate(days)
    ]


def _label(day: date, number: int, days: int) -> str:
    if days > USUAL_DAYS and day.day > 7:
        return ""
    return f"{day:%-d %b}" if days <= 7 or number % 7 == 0 else ""


def _today(is_today: bool, number: int) -> str:
    # Only where no date follows so soon that one would lie over the other.
    return "today" if is_today and number % 7 < 5 else ""


def rows_of(downtimes: Iterable[Downtime], stretch: DayRange) -> list[Row]:
    """Sites with a downtime in the range, by name. The downtimes must be ordered by start."""
    by_site: dict[str, list[Downtime]] = {}
    for downtime in downtimes:
        by_site.setdefault(downtime.site.name, []).append(downtime)
    return [_row(site, by_site[site], stretch) for site in sorted(by_site)]


def _row(site: str, downtimes: Sequence[Downtime], stretch: DayRange) -> Row:
    lanes: list[datetime] = []
    windows = []
    for downtime in downtimes:
        ends_at: datetime = downtime.ends_at  # type: ignore[attr-defined]
        drains_from: datetime = downtime.drains_from  # type: ignore[attr-defined]
        free = (n for n, until in enumerate(lanes) if until <= drains_from)
        lane = next(free, len(lanes))
        overlaps = any(until > downtime.start for until in lanes)
        lanes[lane : lane + 1] = [ends_at]
        x, lead_x = stretch.place(downtime.start), stretch.place(drains_from)
        windows.append(
            Window(
                downtime=downtime,
                y=lane * _LANE_HEIGHT,
                x=x,
                width=max(_LEAST_WIDTH, round(stretch.place(ends_at) - x, 3)),
                lead_x=lead_x,
                lead_width=round(x - lead_x, 3),
                overlaps=overlaps,
            )
        )
    return Row(site, windows, max(1, len(lanes)) * _LANE_HEIGHT)

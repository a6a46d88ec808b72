"""Times of a schedule in cron form, in a time zone, whatever clocks there do.

Five fields - minute, hour, day of the month, month, day of the week - are read as crontab(5) has
them. Where both days are restricted, either will do. When clocks are put forward, a time that does
not exist is the moment of the change; when they are put back, a time that comes twice is the first
one. With every hour in the second field the schedule follows the hours as they pass: none twice,
none missing.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from celery.schedules import ParseException, crontab_parser

MAX_TEXT = 200
_FIELDS = (
    ("minute", 60, 0),
    ("hour", 24, 0),
    ("day of the month", 31, 1),
    ("month", 12, 1),
    ("day of the week", 7, 0),
)
UTC_ZONE = ZoneInfo("UTC")
_EVERY_HOUR = frozenset(range(24))
#: The 29th of February may be eight years ahead; what has not come by then never does.
_MOST_DAYS = 8 * 366 + 1


@dataclass(frozen=True, slots=True)
class Cron:
    """The times of a schedule: what each field allows, and whether both days are restricted."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_either_day: bool

    def allows(self, day: date) -> bool:
        """Whether there are times on this day. Sunday is 0."""
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.is_either_day else of_month and of_week


def parse_cron(text: str) -> Cron:
    """Times in cron form. Raises ValueError with the field that is at fault."""
    if len(text) > MAX_TEXT:
        raise ValueError(f"at most {MAX_TEXT} characters")
    words = text.lower().split()
    if len(words) != len(_FIELDS):
        raise ValueError(
            "must have five fields, such as 0 6 * * mon: minute, hour, day of the month, month, "
            "day of the week"
        )
    allowed = [_allowed(*field, word) for field, word in zip(_FIELDS, words, strict=True)]
    minutes, hours, days, months, weekdays = allowed
    is_either_day = not (words[2].startswith("*") or words[4].startswith("*"))
    cron = Cron(minutes, hours, days, months, weekdays, is_either_day=is_either_day)
    if next_time(cron, UTC_ZONE, datetime(2024, 1, 1, tzinfo=UTC)) is None:
        raise ValueError("there is no such day in any year")
    return cron


def _allowed(name: str, size: int, least: int, word: str) -> frozenset[int]:
    # Both numbers of Sunday are usual.
    if size == 7:
        word = ",".join(_with_one_sunday(part) for part in word.split(","))
    try:
        found = frozenset(crontab_parser(size, least).parse(word))
    except (ParseException, ValueError, TypeError, ZeroDivisionError, RecursionError) as error:
        raise ValueError(f"the {name} {word[:40]!r} makes no sense") from error
    if not found or not found <= set(range(least, least + size)):
        raise ValueError(f"the {name} {word[:40]!r} makes no sense")
    return found


def _with_one_sunday(part: str) -> str:
    """Part of a field of weekdays in which Sunday is 0 and not 7."""
    if part == "7":
        return "0"
    return f"{part.removesuffix('7')}6,0" if part.endswith("-7") else part


def zone_named(name: str) -> ZoneInfo:
    """Time zone of this name, such as Europe/Zurich. Raises ValueError."""
    if name not in zoneinfo.available_timezones():
        raise ValueError(f"there is no time zone {name[:60]!r}")
    return ZoneInfo(name)


def next_time(cron: Cron, zone: ZoneInfo, after: datetime) -> datetime | None:
    """First time behind this moment, in UTC; None where there is none in eight years."""
    return next(next_times(cron, zone, after), None)


def next_times(cron: Cron, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """All times behind this moment in UTC, one after the other, until none comes in eight years."""
    day, days_without = (after - timedelta(days=1)).astimezone(zone).date(), 0
    while days_without < _MOST_DAYS:
        days_without += 1
        for at in sorted({*_times_of(cron, zone, day)}) if cron.allows(day) else ():
            if at > after:
                after, days_without = at, 0
                yield at
        day += timedelta(days=1)


def _times_of(cron: Cron, zone: ZoneInfo, day: date) -> Iterator[datetime]:
    """Moments of a day in UTC, not in order; some may come twice."""
    follows_hours = cron.hours == _EVERY_HOUR
    for hour in cron.hours:
        for minute in cron.minutes:
            local = datetime.combine(day, time(hour, minute))
            yield from _moments(local, zone, follows_hours=follows_hours)


def _moments(local: datetime, zone: ZoneInfo, *, follows_hours: bool) -> Iterator[datetime]:
    """Moments at which clocks show this time; the change, where none does."""
    first, second = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first == second:
        yield first
    elif first < second:
        # It comes twice.
        yield first
        if follows_hours:
            yield second
    elif not follows_hours:
        # It never comes: before the change the second reading counts, behind it the first.
        yield _change_between(second, first, zone)


def _change_between(before: datetime, behind: datetime, zone: ZoneInfo) -> datetime:
    """Moment from which on clocks show another offset."""
    old = before.astimezone(zone).utcoffset()
    while behind - before > timedelta(seconds=1):
        middle = before + (behind - before) / 2
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            behind = middle
    return behind.replace(microsecond=0)

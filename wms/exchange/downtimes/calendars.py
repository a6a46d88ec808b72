"""Reader of downtimes from a calendar (iCalendar, RFC 5545): its events, repeated ones followed.

Repetition is bounded before it is computed (`repetition`). Time zones are those of the zone
database, whatever rules the calendar has for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain, islice
from typing import Any
from zoneinfo import ZoneInfo

import recurring_ical_events
from icalendar import Calendar
from icalendar.cal import ComponentFactory
from icalendar.parser.ical.calendar import CalendarIcalParser

from wms.core.errors import Finding, InvalidInput
from wms.exchange.downtimes.entries import (
    HORIZON,
    MAX_ENTRIES,
    MAX_FINDINGS,
    MAX_PLACES,
    Entry,
    short_reason,
)
from wms.exchange.downtimes.repetition import refusal_of

_MAX_EVENTS = 2000
#: Repeated events in one calendar; each is followed for a year.
_MAX_REPEATED = 100
#: Characters of a LOCATION: each occurrence has its own copy.
_MAX_LOCATION = 10_000
_OLDEST = timedelta(days=20 * 366)
_MOST_SEQUENCE = 2**31 - 1
_ONCE = (
    "UID", "DTSTART", "DTEND", "DURATION", "RECURRENCE-ID", "RRULE", "SEQUENCE", "SUMMARY",
    "DESCRIPTION", "LOCATION", "STATUS", "TRANSP",
)  # fmt: skip
#: What the parser and the zone database raise for values that make no sense, alone or together.
_SENSELESS = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)


class _Parser(CalendarIcalParser):
    """Parser that takes no rules of time zones from the calendar.

    icalendar keeps such rules for all later calendars of the process, and follows them unbounded.
    """

    def handle_end_component(self, vals: str) -> None:
        """Take the component over; its name is what would make icalendar keep a VTIMEZONE."""
        del vals
        super().handle_end_component("")


def read_calendar(text: str, *, zone: str, now: datetime) -> list[Entry]:
    """Entries of a calendar that are not over, repeated events up to `HORIZON`, by their start.

    Times without a zone are of `zone`, and so are whole days. Raises InvalidInput with every event
    that cannot be understood, the first `MAX_FINDINGS` faults of them.
    """
    with _understood():
        calendar = _parsed(text)
        _check(calendar, now)
        for event in calendar.walk("VEVENT"):
            _bound(event, now)
        entries = list(_entries(calendar, ZoneInfo(zone), now))
    return sorted(entries, key=lambda each: (each.start, each.uid))


@contextmanager
def _understood(named: str = "") -> Iterator[None]:
    """Turn what makes no sense into InvalidInput with the place, as far as it is known."""
    try:
        yield
    except _SENSELESS as error:
        raise InvalidInput([_senseless(error, named)]) from error


def _senseless(error: Exception, named: str = "") -> Finding:
    # Errors of files name the folder of the zone database.
    told = getattr(error, "strerror", None) or str(error)
    message = f"cannot be understood: {told[:200]}"
    return Finding(f"{named}: {message}" if named else message, file="calendar")


def _parsed(text: str) -> Calendar:
    match _Parser(text, ComponentFactory(), Calendar.types_factory).parse():
        case [Calendar() as calendar]:
            return calendar
        case _:
            message = "is no calendar: it is not one VCALENDAR from its BEGIN to its END"
            raise InvalidInput.of(message, file="calendar")


def _check(calendar: Calendar, now: datetime) -> None:
    """Raise InvalidInput with the faults of all events."""
    events = calendar.walk("VEVENT")
    if len(events) > _MAX_EVENTS:
        raise InvalidInput.of(f"has more than {_MAX_EVENTS} events", file="calendar")
    faults = chain.from_iterable(_faults(event, now) for event in events)
    findings = list(islice(faults, MAX_FINDINGS))
    if sum("RRULE" in event for event in events) > _MAX_REPEATED:
        findings.append(Finding(f"has more than {_MAX_REPEATED} repeated events", file="calendar"))
    if findings:
        raise InvalidInput(findings)


def _named(event: Any) -> str:
    uid = str(event.get("UID", "")).strip()
    return f"event {uid[:80] or 'without UID'}"


def _faults(event: Any, now: datetime) -> Iterator[Finding]:
    """Faults of an event, named by its UID."""
    named = _named(event)
    for name, message in event.errors:
        yield Finding(f"{named}: {name}: {message}", file="calendar", field=str(name or ""))
    several = [name for name in _ONCE if isinstance(event.get(name), list)]
    for name in several:
        yield Finding(f"{named}: has several {name}", file="calendar", field=name)
    uid = str(event.get("UID", "")).strip()
    if not 0 < len(uid) <= 255:
        yield Finding(f"{named}: needs a UID of 1 to 255 characters", file="calendar", field="UID")
    if event.errors or several:
        return
    try:
        yield from _faults_of_values(event, named, now)
    except _SENSELESS as error:
        yield _senseless(error, named)


def _faults_of_values(event: Any, named: str, now: datetime) -> Iterator[Finding]:
    start = _moment(event, "DTSTART")
    if start is None:
        yield Finding(f"{named}: has no start", file="calendar", field="DTSTART")
        return
    yield from _faults_of_zones(event, named)
    if "RRULE" in event and (reason := refusal_of(event["RRULE"]) or _too_old(start, now)):
        yield Finding(f"{named}: {reason}", file="calendar", field="RRULE")
    if "EXRULE" in event:
        message = f"{named}: has exceptions by a rule, which is not followed"
        yield Finding(message, file="calendar", field="EXRULE")
    if len(str(event.get("LOCATION", ""))) > _MAX_LOCATION or len(_places(event)) > MAX_PLACES:
        message = f"{named}: names more than {MAX_PLACES} places, or is too long"
        yield Finding(message, file="calendar", field="LOCATION")


def _faults_of_zones(event: Any, named: str) -> Iterator[Finding]:
    for name in ("DTSTART", "DTEND", "RECURRENCE-ID", "RDATE", "EXDATE"):
        given = event.get(name, [])
        for value in given if isinstance(given, list) else [given]:
            zone = value.params.get("TZID")
            if zone and any(_is_floating(each.dt) for each in getattr(value, "dts", [value])):
                message = f"{named}: there is no time zone {str(zone)[:64]}"
                yield Finding(message, file="calendar", field=name)


def _is_floating(moment: Any) -> bool:
    """True for a time without a zone, and a period from such a one."""
    begin = moment[0] if isinstance(moment, tuple) else moment
    return isinstance(begin, datetime) and begin.tzinfo is None


def _moment(event: Any, name: str) -> date | None:
    value = getattr(event.get(name), "dt", None)
    return value if isinstance(value, date) else None


def _too_old(start: date, now: datetime) -> str:
    oldest = (now - _OLDEST).date()
    day = start.date() if isinstance(start, datetime) else start
    return f"repeats since {day}: give it a later start" if day < oldest else ""


def _bound(event: Any, now: datetime) -> None:
    """End an endless repetition behind the time that is looked at."""
    rule = event.get("RRULE")
    if rule is None or "COUNT" in rule:
        return
    whole_days = not isinstance(event["DTSTART"].dt, datetime)
    last = now + HORIZON + timedelta(days=1)
    given = rule.get("UNTIL")
    if not given or _day(given[0]) > last.date():
        # RFC 5545: in UTC, or a date where the start is one.
        rule["UNTIL"] = [last.date() if whole_days else last.astimezone(UTC)]


def _day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _entries(calendar: Calendar, zone: ZoneInfo, now: datetime) -> Iterator[Entry]:
    events = calendar.walk("VEVENT")
    series = {str(event["UID"]) for event in events if _is_of_series(event)}
    single = [event for event in events if str(event["UID"]) not in series]
    occurrences = recurring_ical_events.of(calendar, skip_bad_series=False).between(
        now, now + HORIZON
    )
    repeated = [event for event in occurrences if str(event["UID"]) in series]
    if len(single) + len(repeated) > MAX_ENTRIES:
        raise InvalidInput.of(f"has more than {MAX_ENTRIES} downtimes", file="calendar")
    for event in [*_latest(single), *repeated]:
        with _understood(_named(event)):
            entry = _entry(event, zone, is_series=str(event["UID"]) in series)
        if entry.end > now:
            yield entry


def _is_of_series(event: Any) -> bool:
    """True for a repeated event, and for an occurrence, whose event may not be told."""
    return any(name in event for name in ("RRULE", "RDATE", "RECURRENCE-ID"))


def _latest(events: list[Any]) -> list[Any]:
    """Each single event once: of several with one UID the one of the highest sequence."""
    by_uid: dict[str, Any] = {}
    for event in events:
        known = by_uid.get(str(event["UID"]))
        if known is None or int(event.get("SEQUENCE", 0)) >= int(known.get("SEQUENCE", 0)):
            by_uid[str(event["UID"])] = event
    return list(by_uid.values())


def _entry(event: Any, zone: ZoneInfo, *, is_series: bool) -> Entry:
    start = _at(event.start, zone)
    recurrence = _at(event["RECURRENCE-ID"].dt, zone) if "RECURRENCE-ID" in event else start
    return Entry(
        uid=str(event["UID"]).strip(),
        start=start,
        end=_at(event.end, zone),
        reason=short_reason(str(event.get("SUMMARY", "")), str(event.get("DESCRIPTION", "")))
        or "no reason given",
        places=_places(event),
        recurrence=f"{recurrence.astimezone(UTC):%Y%m%dT%H%M%SZ}" if is_series else "",
        sequence=min(max(int(event.get("SEQUENCE", 0)), 0), _MOST_SEQUENCE),
        is_cancelled=str(event.get("STATUS", "")).upper() == "CANCELLED",
        skipped="it is transparent: the site stays up" if _is_transparent(event) else "",
    )


def _places(event: Any) -> tuple[str, ...]:
    parts = (part.strip() for part in str(event.get("LOCATION", "")).split(","))
    return tuple(part for part in parts if part)


def _is_transparent(event: Any) -> bool:
    return str(event.get("TRANSP", "")).upper() == "TRANSPARENT"


def _at(moment: date, zone: ZoneInfo) -> datetime:
    """A moment of a calendar: whole days begin at midnight of the zone."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time(), tzinfo=zone)
    elif moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return moment.astimezone(UTC)

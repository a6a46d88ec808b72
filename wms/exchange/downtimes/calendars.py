"""Reader of downtimes from a calendar (iCalendar, RFC 5545): its events, repeated ones followed.

Repetition is bounded before it is computed (`repetition`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import recurring_ical_events
from icalendar import Calendar
from icalendar.error import ComponentEndMissing

from wms.core.errors import Finding, InvalidInput
from wms.exchange.downtimes.entries import HORIZON, MAX_ENTRIES, Entry, short_reason
from wms.exchange.downtimes.repetition import refusal_of

_MAX_EVENTS = 2000
#: Repeated events in one calendar; each is followed for a year.
_MAX_REPEATED = 100
_OLDEST = timedelta(days=20 * 366)
_MOST_SEQUENCE = 2**31 - 1


def read_calendar(text: str, *, zone: str, now: datetime) -> list[Entry]:
    """Entries of a calendar that are not over, repeated events up to `HORIZON`, by their start.

    Times without a zone are of `zone`, and so are whole days. Raises InvalidInput with every event
    that cannot be understood.
    """
    calendar = _parsed(text)
    events = calendar.walk("VEVENT")
    if len(events) > _MAX_EVENTS:
        raise InvalidInput.of(f"has more than {_MAX_EVENTS} events", file="calendar")
    findings = [fault for event in events for fault in _faults(event, now)]
    repeated = sum("RRULE" in event for event in events)
    if repeated > _MAX_REPEATED:
        findings.append(Finding(f"has more than {_MAX_REPEATED} repeated events", file="calendar"))
    if findings:
        raise InvalidInput(findings)
    for event in events:
        _bound(event, now)
    series = {str(event["UID"]) for event in events if "RRULE" in event or "RDATE" in event}
    try:
        entries = list(_entries(calendar, series, ZoneInfo(zone), now))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise InvalidInput.of(f"cannot be followed: {error}", file="calendar") from error
    return sorted(entries, key=lambda each: (each.start, each.uid))


def _parsed(text: str) -> Calendar:
    try:
        calendar = Calendar.from_ical(text)
    except (ValueError, KeyError, IndexError, ComponentEndMissing) as error:
        raise InvalidInput.of(f"is no calendar: {error}", file="calendar") from error
    if not isinstance(calendar, Calendar):
        raise InvalidInput.of("is no calendar: it does not begin with VCALENDAR", file="calendar")
    return calendar


def _faults(event: Any, now: datetime) -> Iterator[Finding]:
    """What is wrong with an event, named by its UID."""
    uid = str(event.get("UID", "")).strip()
    named = f"event {uid[:80] or 'without UID'}"
    for name, message in event.errors:
        yield Finding(f"{named}: {name}: {message}", file="calendar", field=str(name or ""))
    if not 0 < len(uid) <= 255:
        yield Finding(f"{named}: needs a UID of 1 to 255 characters", file="calendar", field="UID")
    if event.errors:
        return
    start = _moment(event, "DTSTART")
    if start is None:
        yield Finding(f"{named}: has no start", file="calendar", field="DTSTART")
        return
    yield from _faults_of_zones(event, named)
    rules = event.get("RRULE", [])
    for rule in rules if isinstance(rules, list) else [rules]:
        reason = refusal_of(rule) or _too_old(start, now)
        if reason:
            yield Finding(f"{named}: {reason}", file="calendar", field="RRULE")


def _faults_of_zones(event: Any, named: str) -> Iterator[Finding]:
    for name in ("DTSTART", "DTEND"):
        moment = _moment(event, name)
        zone = event[name].params.get("TZID") if name in event else None
        if zone and isinstance(moment, datetime) and moment.tzinfo is None:
            message = f"{named}: there is no time zone {str(zone)[:64]}"
            yield Finding(message, file="calendar", field=name)


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
    for each in rule if isinstance(rule, list) else [rule]:
        if each is None or "COUNT" in each:
            continue
        whole_days = not isinstance(event["DTSTART"].dt, datetime)
        last = now + HORIZON + timedelta(days=1)
        # RFC 5545: in UTC, or a date where the start is one.
        until = [last.date() if whole_days else last.astimezone(UTC)]
        given = each.get("UNTIL")
        if not given or _day(given[0]) > last.date():
            each["UNTIL"] = until


def _day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _entries(
    calendar: Calendar, series: set[str], zone: ZoneInfo, now: datetime
) -> Iterator[Entry]:
    single = [event for event in calendar.walk("VEVENT") if str(event["UID"]) not in series]
    occurrences = recurring_ical_events.of(calendar, skip_bad_series=False).between(
        now, now + HORIZON
    )
    repeated = [event for event in occurrences if str(event["UID"]) in series]
    if len(single) + len(repeated) > MAX_ENTRIES:
        raise InvalidInput.of(f"has more than {MAX_ENTRIES} downtimes", file="calendar")
    for event in [*_latest(single), *repeated]:
        is_series = str(event["UID"]) in series
        entry = _entry(event, zone, is_series=is_series)
        if entry.end > now:
            yield entry


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
    location = str(event.get("LOCATION", "")).strip()
    return Entry(
        uid=str(event["UID"]).strip(),
        start=start,
        end=_at(event.end, zone),
        reason=short_reason(str(event.get("SUMMARY", "")), str(event.get("DESCRIPTION", "")))
        or "no reason given",
        places=tuple(part.strip() for part in location.split(",") if part.strip()),
        recurrence=f"{recurrence.astimezone(UTC):%Y%m%dT%H%M%SZ}" if is_series else "",
        sequence=min(max(int(event.get("SEQUENCE", 0)), 0), _MOST_SEQUENCE),
        is_cancelled=str(event.get("STATUS", "")).upper() == "CANCELLED",
        skipped="it is transparent: the site stays up" if _is_transparent(event) else "",
    )


def _is_transparent(event: Any) -> bool:
    return str(event.get("TRANSP", "")).upper() == "TRANSPARENT"


def _at(moment: date, zone: ZoneInfo) -> datetime:
    """A moment of a calendar: whole days begin at midnight of the zone."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time(), tzinfo=zone)
    elif moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return moment.astimezone(UTC)

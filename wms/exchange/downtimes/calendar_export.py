"""Calendar (iCalendar, RFC 5545) of downtimes, for programs that subscribe to it.

What it has can be read again by `wms.exchange.downtimes.calendars`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta

from icalendar import Calendar, Event

from wms.sites.downtimes.models import Downtime

#: How often a program that subscribes should ask again.
_REFRESH = timedelta(minutes=15)
_LONGEST_SUMMARY = 120


def calendar_of(
    downtimes: Iterable[Downtime], *, host: str, address_of: Callable[[Downtime], str]
) -> bytes:
    """Calendar of these downtimes; cancelled ones say so, so that who has them drops them.

    `host` makes the names of events unique in the world, and the same each time.
    """
    calendar = Calendar()
    calendar.add("prodid", "-//Pilotage//Downtimes//EN")
    calendar.add("version", "2.0")
    calendar.add("calscale", "GREGORIAN")
    calendar.add("x-wr-calname", "Downtimes of sites")
    calendar.add("refresh-interval", _REFRESH, parameters={"VALUE": "DURATION"})
    for downtime in downtimes:
        calendar.add_component(_event_of(downtime, host, address_of(downtime)))
    # Lines are folded by their octets, and end as the standard wants.
    return bytes(calendar.to_ical())


def _event_of(downtime: Downtime, host: str, address: str) -> Event:
    event = Event()
    event.add("uid", f"downtime-{downtime.pk}@{host}")
    # Of what is published DTSTAMP is the time of its last revision.
    event.add("dtstamp", downtime.cancelled_at or downtime.created_at)
    event.add("created", downtime.created_at)
    event.add("dtstart", downtime.start)
    event.add("dtend", downtime.end)
    event.add("summary", _summary(downtime))
    event.add("location", downtime.site.name)
    event.add("description", _description(downtime))
    event.add("url", address)
    event.add("categories", ["DOWNTIME"])
    event.add("status", "CANCELLED" if downtime.cancelled_at else "CONFIRMED")
    event.add("transp", "TRANSPARENT")
    return event


def _summary(downtime: Downtime) -> str:
    return f"{downtime.site.name}: {downtime.reason}"[:_LONGEST_SUMMARY]


def _description(downtime: Downtime) -> str:
    lines = [downtime.reason, f"Entered by {downtime.author}."]
    if downtime.lead_time_s:
        lead = timedelta(seconds=downtime.lead_time_s)
        lines.append(f"The site takes no new DAG from {downtime.start - lead:%Y-%m-%d %H:%M} UTC.")
    if downtime.cancelled_at:
        lines.append(f"Cancelled by {downtime.cancelled_by}: {downtime.cancel_reason}")
    return "\n".join(lines)

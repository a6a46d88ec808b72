"""Counts per minute for history charts: jobs by event, failures by reason, waiting times, matches.

Jobs by event are those of all, and of each frontend.

All come from rows with a time of their own. Whole minutes are counted anew until no transaction can
add to them any more, and a new count replaces the stored one: so a count is exact whatever commits
late, and nothing is counted twice when two samplers run at once, or one that was away catches up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from matching.round_robin_archives import SPREAD_RATIO
from wms.history.frontends import (
    DEFAULT_ID,
    THROUGHPUT_OF_FRONTENDS,
    frontends_with_series,
    series_of,
)
from wms.history.operations import MinuteCount, store_counts
from wms.history.sql import (
    COUNT_EVENTS,
    COUNT_EVENTS_OF_FRONTENDS,
    COUNT_MATCHES,
    COUNT_WAITED,
    FIND_SETTLED,
)

#: A sampler that was away for longer leaves a gap. The finest archive holds twice as much.
LOOKS_BACK = timedelta(hours=12)
#: Time that a cycle catches up with at most, and time that every cycle counts.
_CAUGHT_UP = timedelta(minutes=15)
_LATEST = timedelta(minutes=2)
#: The record of a negotiation is written when it is over, and has the time of its beginning.
_NEGOTIATION_LASTS = timedelta(minutes=10)
_MINUTE = timedelta(minutes=1)

#: `throughput.<name>` by the event that it counts.
THROUGHPUT = {
    "submitted": "enqueue",
    "started": "start",
    "done": "complete",
    "failed": "fail",
    "killed": "kill",
}
#: The series that has a bin for every minute that was counted, be it with nothing.
COUNTED_MINUTES = "throughput.submitted"
#: Why an attempt failed, as far as its row tells; `failures.<name>`.
FAILURES = (
    "exit_code", "signal", "output_missing", "watchdog", "pilot_time", "stopped", "preempted",
    "pilot_lost", "not_run", "never_started", "other",
)  # fmt: skip
WAITING = "waiting.seconds"
MATCHES = "negotiation.matches"


def count_up_to_now(settled: datetime | None) -> datetime:
    """Count and store the minutes that may have changed since all before `settled` was counted.

    Of what was missed a part is caught up with in each cycle; the latest minutes are counted in
    any. Returns up to when everything is counted now. Times are those of the database's clock, of
    which one that was set back is believed.
    """
    with connection.cursor() as cursor:
        cursor.execute(FIND_SETTLED)
        times: tuple[datetime, datetime] = cursor.fetchone()
    now, horizon = times
    since = _minute_of(max(min(settled or now, horizon), now - LOOKS_BACK))
    until = min(since + _CAUGHT_UP, now)
    store_counts(count(since, until))
    if until < now:
        store_counts(count(max(until, now - _LATEST), now))
    return min(horizon, until)


def count(since: datetime, until: datetime) -> list[MinuteCount]:
    """Counts of all minutes that overlap the time from `since` to `until`."""
    first = _minute_of(since)
    span = {"since": first, "until": until}
    earlier = {"since": first - _NEGOTIATION_LASTS, "until": until}
    found = [*_of_events(span), *_of_frontends(span), *_waited(span), *_matched(earlier)]
    known = {(each.series, each.minute) for each in found}
    dense = [f"throughput.{name}" for name in THROUGHPUT]
    minutes = range(max(0, -(-(until - first) // _MINUTE)))
    found += [
        MinuteCount.number(series, first + number * _MINUTE, 0)
        for series in dense
        for number in minutes
        if (series, first + number * _MINUTE) not in known
    ]
    return found


def _minute_of(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(second=0, microsecond=0)


def _rows(sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [(row[0].replace(tzinfo=UTC), *row[1:]) for row in cursor.fetchall()]


def _of_events(span: dict[str, Any]) -> Iterator[MinuteCount]:
    names = {event: name for name, event in THROUGHPUT.items()}
    sums: dict[tuple[str, datetime], int] = defaultdict(int)
    events = [*names, "reschedule"]
    for minute, event, site, why, number in _rows(COUNT_EVENTS, span | {"events": events}):
        for series in _series_of(names.get(event, ""), site, why):
            sums[series, minute] += number
    for (series, minute), number in sums.items():
        yield MinuteCount.number(series, minute, number)


def _series_of(name: str, site: str | None, why: str | None) -> Iterable[str]:
    """The series that an event counts in; a job that is rescheduled has none of its own."""
    if name:
        yield f"throughput.{name}"
    if name and site:
        yield f"throughput.{name}@{site}"
    if name in ("failed", ""):
        yield f"failures.{why or 'never_started'}"
        if site:
            yield f"failures@{site}"


def _of_frontends(span: dict[str, Any]) -> Iterator[MinuteCount]:
    """Counts of the jobs of each frontend. One query without any frontend, else two."""
    ids = frontends_with_series()
    if not ids:
        return
    names = {THROUGHPUT[name]: name for name in THROUGHPUT_OF_FRONTENDS}
    asked = span | {"events": list(names), "frontends": [DEFAULT_ID, *ids]}
    for minute, event, frontend_id, number in _rows(COUNT_EVENTS_OF_FRONTENDS, asked):
        series = series_of(f"throughput.{names[event]}", frontend_id)
        yield MinuteCount.number(series, minute, number)


def _waited(span: dict[str, Any]) -> Iterator[MinuteCount]:
    by_minute: dict[datetime, list[tuple[Any, ...]]] = defaultdict(list)
    for minute, *row in _rows(COUNT_WAITED, span | {"ratio": SPREAD_RATIO}):
        by_minute[minute].append(tuple(row))
    for minute, rows in by_minute.items():
        numbers, totals, minima, maxima = ([row[at] for row in rows] for at in range(1, 5))
        many = {row[0]: row[1] for row in rows}
        classes = [many.get(place, 0) for place in range(max(many) + 1)]
        yield MinuteCount(
            WAITING, minute, sum(numbers), sum(totals), min(minima), max(maxima), classes
        )


def _matched(span: dict[str, Any]) -> Iterator[MinuteCount]:
    for minute, number in _rows(COUNT_MATCHES, span):
        yield MinuteCount.number(MATCHES, minute, number)

"""What is counted: jobs that were submitted, started and ended, why they failed, how long they
waited, and matches. All from rows with a time of their own.

Whole minutes are counted anew until no transaction can add to them any more, and what is stored
replaces what was there: so a count is exact whatever commits late, and nothing is counted twice
when two samplers run at once, or one that was away catches up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from matching.round_robin import SPREAD_RATIO
from wms.history.services import Counted, store_counts

#: A sampler that was away for longer leaves a gap. The finest archive holds twice as much.
LOOKS_BACK = timedelta(hours=12)
#: So much is caught up with in a cycle, so that none takes long; and so much is always counted.
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

# Events are written in the transaction of the change, with the time of its statement.
_EVENTS = """
SELECT date_trunc('minute', event.created_at AT TIME ZONE 'UTC') AS minute, event.event,
    attempt.site_name, attempt.why, count(*)
FROM jobs_jobevent AS event
LEFT JOIN LATERAL (
    SELECT site_name, CASE
        WHEN stopped_by = 'watchdog' THEN 'watchdog'
        WHEN stopped_by = 'pilot_time' THEN 'pilot_time'
        WHEN stopped_by = 'preemption' THEN 'preempted'
        WHEN outcome = 'not_run' THEN 'not_run'
        WHEN outcome = 'lost' THEN 'pilot_lost'
        WHEN outcome = 'killed' OR stopped_by <> '' THEN 'stopped'
        WHEN signal IS NOT NULL THEN 'signal'
        WHEN exit_code <> 0 THEN 'exit_code'
        WHEN event.cause = 'outputs' THEN 'output_missing'
        ELSE 'other' END AS why
    FROM jobs_attempt
    WHERE job_id = event.job_id AND matched_at <= event.created_at
        AND event.event IN ('fail', 'reschedule', 'complete', 'start')
    ORDER BY number DESC LIMIT 1
) AS attempt ON true
WHERE event.created_at >= %(since)s AND event.created_at < %(until)s
    AND event.event = ANY(%(events)s)
GROUP BY 1, 2, 3, 4
"""
# A job waits from when it joined a TaskQueue last. Classes are those of `matching.round_robin`.
_WAITED = """
SELECT minute, class, count(*), sum(waited), min(waited), max(waited)
FROM (
    SELECT minute, waited, CASE WHEN waited < 1 THEN 0
        ELSE floor(ln(waited) / ln(%(ratio)s))::int + 1 END AS class
    FROM (
        SELECT date_trunc('minute', event.created_at AT TIME ZONE 'UTC') AS minute,
            greatest(0, extract(epoch FROM event.created_at - queued.created_at))::float8 AS waited
        FROM jobs_jobevent AS event
        CROSS JOIN LATERAL (
            SELECT created_at FROM jobs_jobevent
            WHERE job_id = event.job_id AND id < event.id
                AND event IN ('enqueue', 'requeue', 'release')
            ORDER BY id DESC LIMIT 1
        ) AS queued
        WHERE event.created_at >= %(since)s AND event.created_at < %(until)s
            AND event.event = 'start'
    ) AS started
) AS classed
GROUP BY minute, class
"""
_MATCHED = """
SELECT date_trunc('minute', started_at AT TIME ZONE 'UTC'), sum(matches)
FROM dags_negotiationcycle
WHERE started_at >= %(since)s AND started_at < %(until)s AND matches > 0
GROUP BY 1
"""
# A transaction that is open now may still add events of any time since it began; one that has
# changed nothing yet, of any time since its statement began.
_SETTLED = """
SELECT statement_timestamp(), least(statement_timestamp(), (
    SELECT min(CASE WHEN backend_xid IS NULL THEN query_start ELSE xact_start END)
    FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend'
        AND pid <> pg_backend_pid() AND (backend_xid IS NOT NULL OR state = 'active')
))
"""


def count_up_to_now(settled: datetime | None) -> datetime:
    """Count and store the minutes that may have changed since all before `settled` was counted.

    Of what was missed a part is caught up with in each cycle; the latest minutes are counted in
    any. Returns up to when everything is counted now. Times are those of the database's clock, of
    which one that was set back is believed.
    """
    with connection.cursor() as cursor:
        cursor.execute(_SETTLED)
        times: tuple[datetime, datetime] = cursor.fetchone()
    now, horizon = times
    since = _minute_of(max(min(settled or now, horizon), now - LOOKS_BACK))
    until = min(since + _CAUGHT_UP, now)
    store_counts(count(since, until))
    if until < now:
        store_counts(count(max(until, now - _LATEST), now))
    return min(horizon, until)


def count(since: datetime, until: datetime) -> list[Counted]:
    """What happened in all minutes that the time from `since` to `until` touches."""
    first = _minute_of(since)
    span = {"since": first, "until": until}
    earlier = {"since": first - _NEGOTIATION_LASTS, "until": until}
    found = [*_of_events(span), *_waited(span), *_matched(earlier)]
    known = {(each.series, each.minute) for each in found}
    dense = [f"throughput.{name}" for name in THROUGHPUT]
    minutes = range(max(0, -(-(until - first) // _MINUTE)))
    found += [
        Counted.number(series, first + number * _MINUTE, 0)
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


def _of_events(span: dict[str, Any]) -> Iterator[Counted]:
    names = {event: name for name, event in THROUGHPUT.items()}
    sums: dict[tuple[str, datetime], int] = defaultdict(int)
    events = [*names, "reschedule"]
    for minute, event, site, why, number in _rows(_EVENTS, span | {"events": events}):
        for series in _series_of(names.get(event, ""), site, why):
            sums[series, minute] += number
    for (series, minute), number in sums.items():
        yield Counted.number(series, minute, number)


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


def _waited(span: dict[str, Any]) -> Iterator[Counted]:
    by_minute: dict[datetime, list[tuple[Any, ...]]] = defaultdict(list)
    for minute, *row in _rows(_WAITED, span | {"ratio": SPREAD_RATIO}):
        by_minute[minute].append(tuple(row))
    for minute, rows in by_minute.items():
        numbers, totals, minima, maxima = ([row[at] for row in rows] for at in range(1, 5))
        many = {row[0]: row[1] for row in rows}
        classes = [many.get(place, 0) for place in range(max(many) + 1)]
        yield Counted(WAITING, minute, sum(numbers), sum(totals), min(minima), max(maxima), classes)


def _matched(span: dict[str, Any]) -> Iterator[Counted]:
    for minute, number in _rows(_MATCHED, span):
        yield Counted.number(MATCHES, minute, number)

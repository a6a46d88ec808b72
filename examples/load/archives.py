"""Round-robin archives of the example's history, filled as if the sampler had run all the time.

Throughput is counted from the job events that were loaded; the levels before now are made up,
around what they are now.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection

from examples.load.scale import Scale
from matching.round_robin_archives import ARCHIVES
from wms.history.counting import THROUGHPUT, count
from wms.history.operations import store_counts
from wms.history.sampling import run_cycle

#: The finest archive is counted from the events so far back, as the sampler does it.
_COUNTED = timedelta(hours=6)
#: Of a single site not so many bins are kept as of all: a portal that has run for a while.
_OF_A_SITE = (720, 864, 720, 400)

# A wave of a day, one of a week, and some noise that is the same in each run.
_LEVELS = """
INSERT INTO history_bin
    (series_id, archive, slot, start, count, total, minimum, maximum, last, last_at)
SELECT id, %(archive)s, number %% %(slots)s, to_timestamp(number * %(step)s), %(samples)s,
    %(samples)s * level, 0.9 * level, 1.15 * level, level, to_timestamp(number * %(step)s)
FROM (
    SELECT series.id, number, round((series.level * (
        1 + 0.3 * sin(number * %(step)s * 6.2832 / 86400 + series.id)
        + 0.2 * sin(number * %(step)s * 6.2832 / 604800)
        + 0.1 * ((hashint8(number * 7919 + series.id) %% 100) / 100.0))
        )::numeric, 1)::float8 AS level
    FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS number,
        (SELECT s.id, greatest(b.last, 1) AS level, position('@' IN s.name) > 0 AS is_of_site
         FROM history_series AS s JOIN history_bin AS b
             ON b.series_id = s.id AND b.archive = 0 AND b.start >= %(since)s
         WHERE s.name !~ '^(throughput|failures|waiting|negotiation)') AS series
    WHERE NOT series.is_of_site OR number > %(last)s - %(of_a_site)s
    ORDER BY number, series.id
) AS made
ON CONFLICT DO NOTHING
"""
# Of what is counted `count` is the minutes in which there was any, see `wms.history.operations`.
_COUNTS = """
INSERT INTO history_bin
    (series_id, archive, slot, start, count, total, minimum, maximum, last, last_at)
SELECT series.id, %(archive)s, number %% %(slots)s, to_timestamp(number * %(step)s),
    greatest(1, %(step)s / 60), total, 0, total, total / greatest(1, %(step)s / 60),
    to_timestamp(number * %(step)s)
FROM (
    SELECT event, floor(extract(epoch FROM created_at) / %(step)s)::bigint AS number,
        count(*) AS total
    FROM jobs_loggedjobevent
    WHERE event = ANY(%(events)s) AND created_at >= to_timestamp(%(first)s * %(step)s)
    GROUP BY 1, 2
) AS counted
JOIN unnest(%(events)s::text[], %(names)s::text[]) AS named(event, name) USING (event)
JOIN history_series AS series ON series.name = named.name
ON CONFLICT DO NOTHING
"""


def fill_archives(scale: Scale, now: datetime) -> None:
    """Sample once, count what happened lately, and make up what was before."""
    run_cycle(now)
    until = now.replace(second=0, microsecond=0)
    store_counts(count(until - min(_COUNTED, timedelta(seconds=scale.seconds)), until))
    with connection.cursor() as cursor:
        for number, archive in enumerate(ARCHIVES):
            last = int(now.timestamp()) // archive.step_s - 1
            bins = min(archive.slots - 1, int(scale.seconds) // archive.step_s)
            values = {
                "archive": number, "slots": archive.slots, "step": archive.step_s,
                "samples": max(1, archive.step_s // 10), "first": last - bins + 1, "last": last,
                "of_a_site": _OF_A_SITE[number], "since": now - timedelta(minutes=2),
                "events": list(THROUGHPUT.values()),
                "names": [f"throughput.{name}" for name in THROUGHPUT],
            }  # fmt: skip
            cursor.execute(_LEVELS, values)
            cursor.execute(_COUNTS, values)

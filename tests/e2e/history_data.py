"""Test data of the history: samples in all round-robin archives over a long time, with a gap."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import connection

from matching.round_robin_archives import ARCHIVES
from wms.accounting.models import Frontend
from wms.history.frontends import DEFAULT_ID, series_of
from wms.history.models import Series

#: Level and swing of each series.
_LEVELS = {
    "jobs.waiting": (140, 60), "jobs.running": (80, 30), "jobs.matched": (3, 3),
    "jobs.held": (4, 4), "jobs.done": (9000, 900), "dags.running": (3, 2), "dags.idle": (2, 2),
    "dags.held": (1, 1), "pilots.running": (60, 25), "pilots.queued": (14, 8),
    "pilots.submitted": (3, 3), "pilots.requested": (150, 70), "pilots.granted": (30, 12),
    "sites.enabled": (3, 1), "sites.banned": (1, 1), "sites.downtime": (1, 1),
    "loop.negotiator.seconds": (0.4, 0.2), "loop.dag-engine.seconds": (0.15, 0.1),
    "loop.director.seconds": (0.25, 0.1), "loop.pilot-monitor.seconds": (0.08, 0.03),
    "loop.sampler.seconds": (0.12, 0.05), "negotiation.requests": (12, 8),
    "negotiation.unmatched": (7, 5), "negotiation.seconds": (0.4, 0.2),
}  # fmt: skip
#: The same for a minute of what is counted.
_COUNTS = {
    "throughput.submitted": (22, 14), "throughput.started": (20, 8), "throughput.done": (18, 8),
    "throughput.failed": (1, 1), "throughput.killed": (0, 1), "failures.exit_code": (0.6, 0.6),
    "failures.pilot_lost": (0.3, 0.4), "failures.watchdog": (0.1, 0.2),
    "negotiation.matches": (1.2, 1),
}  # fmt: skip
_AT_SITES = {
    "pilots.requested": (50, 25), "pilots.granted": (10, 5), "pilots.running": (20, 9),
    "pilots.queued": (5, 4), "throughput.started": (7, 4), "throughput.done": (6, 4),
    "throughput.failed": (0.3, 0.4), "failures": (0.4, 0.5),
}  # fmt: skip
_JOBS_OF_FRONTENDS = {"jobs.waiting": (60, 20), "jobs.running": (20, 8)}
_FILL = """
INSERT INTO history_bin (series_id, archive, slot, start, count, total, minimum, maximum, last,
    last_at, counts)
SELECT series_id, %(archive)s, number %% %(turn)s, to_timestamp(number * %(step)s), samples,
    value * samples, CASE WHEN is_spread THEN 1 ELSE greatest(0, value - swing / 8) END,
    CASE WHEN is_spread THEN 900 ELSE value + swing / 5 END, value,
    to_timestamp(number * %(step)s), CASE WHEN is_spread
        THEN array_fill(0, ARRAY[24 + round(8 * sin(number * %(step)s / 9000.0))::int])
            || ARRAY[3, 9, 14, 22, 17, 12, 9, 6, 4, 3, 2, 2, 1, 0, 1, 0, 0, 1]
        END
FROM (
    SELECT *, greatest(0, round((level + swing * 0.7 * sin(number * %(step)s / 14000.0 + phase)
        + swing * 0.1 * sin(number * 1.7 + phase)
        + swing * 0.2 * sin(number * %(step)s / 2000.0 + phase))::numeric, digits)) AS value
    FROM unnest(%(series)s::bigint[], %(levels)s::float8[], %(swings)s::float8[],
        %(samples)s::int[], %(digits)s::int[], %(spreads)s::bool[])
        WITH ORDINALITY AS series(series_id, level, swing, samples, digits, is_spread, phase)
    CROSS JOIN generate_series(%(first)s::bigint, %(last)s::bigint) AS number
) AS drawn
WHERE to_timestamp(number * %(step)s) NOT BETWEEN %(gap)s AND %(gap_end)s
"""


def fill(
    now: datetime,
    sites: Sequence[str],
    *,
    back: timedelta,
    kinds: tuple[str, ...] = ("",),
) -> None:
    """Fill all archives, for this time back at most, with a gap of an hour.

    Only series whose names begin with one of `kinds`: each takes its time.
    """
    rows = [(name, *shape, False) for name, shape in _LEVELS.items()] + [
        (f"{name}@{site}", *shape, False) for site in sites for name, shape in _AT_SITES.items()
    ]
    rows += [
        (series_of(name, pk), *shape, False)
        for pk in [DEFAULT_ID, *Frontend.objects.values_list("pk", flat=True)]
        for name, shape in {**_AT_SITES, **_JOBS_OF_FRONTENDS}.items()
    ]
    rows += [(name, *shape, True) for name, shape in _COUNTS.items()]
    rows.append(("waiting.seconds", 60, 20, True))
    rows = [row for row in rows if row[0].startswith(kinds)]
    Series.objects.bulk_create([Series(name=row[0]) for row in rows], ignore_conflicts=True)
    ids = dict(Series.objects.values_list("name", "pk"))
    with connection.cursor() as cursor:
        for number, ring in enumerate(ARCHIVES):
            last = int(now.timestamp()) // ring.step_s
            cursor.execute(
                _FILL,
                {
                    "archive": number, "turn": ring.slots, "step": ring.step_s,
                    "first": last - min(int(back.total_seconds()) // ring.step_s, ring.slots) + 1,
                    "last": last,
                    "gap": now - timedelta(hours=6), "gap_end": now - timedelta(hours=5),
                    "series": [ids[row[0]] for row in rows],
                    "levels": [float(row[1]) for row in rows],
                    "swings": [float(row[2]) for row in rows],
                    "samples": [ring.step_s // 60 if row[3] else 6 for row in rows],
                    "digits": [2 if row[0].endswith(".seconds") else 0 for row in rows],
                    "spreads": [row[0] == "waiting.seconds" for row in rows],
                },
            )  # fmt: skip

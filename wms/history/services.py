"""Storing samples and counts in the rings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db import connection, transaction

from matching.round_robin import ARCHIVES
from wms.history.models import Series

# A sample joins the bin of its time if that is there already, else it overwrites what the ring held
# one turn ago; an older sample than the bin's own time changes nothing. But a bin of a time to come
# was stored while a clock was ahead; it would keep others out of its place for as long as that was.
# One statement for all series of an archive: the ORM's upsert cannot combine the old row with the
# new one.
_STORE = """
INSERT INTO history_bin AS bin
    (series_id, archive, slot, start, count, total, minimum, maximum, last, last_at)
SELECT sample.series_id, %(archive)s, %(slot)s, %(start)s, 1, value, value, value, value, %(at)s
FROM unnest(%(series)s::bigint[], %(values)s::float8[]) AS sample(series_id, value)
ON CONFLICT (series_id, archive, slot) DO UPDATE SET
    start = excluded.start,
    count = CASE WHEN bin.start = excluded.start THEN bin.count + 1 ELSE 1 END,
    total = CASE WHEN bin.start = excluded.start
        THEN bin.total + excluded.total ELSE excluded.total END,
    minimum = CASE WHEN bin.start = excluded.start
        THEN least(bin.minimum, excluded.minimum) ELSE excluded.minimum END,
    maximum = CASE WHEN bin.start = excluded.start
        THEN greatest(bin.maximum, excluded.maximum) ELSE excluded.maximum END,
    last = CASE WHEN bin.start = excluded.start AND bin.last_at > excluded.last_at
        THEN bin.last ELSE excluded.last END,
    last_at = CASE WHEN bin.start = excluded.start
        THEN greatest(bin.last_at, excluded.last_at) ELSE excluded.last_at END
WHERE bin.start <= excluded.start OR bin.start > statement_timestamp()
"""

# What was counted anew replaces what was counted before, so that counting twice changes nothing.
_REPLACE = """
ON CONFLICT (series_id, archive, slot) DO UPDATE SET
    start = excluded.start, count = excluded.count, total = excluded.total,
    minimum = excluded.minimum, maximum = excluded.maximum, last = excluded.last,
    last_at = excluded.last_at, counts = excluded.counts
WHERE bin.start <= excluded.start OR bin.start > statement_timestamp()
"""
_COLUMNS = """
INSERT INTO history_bin AS bin
    (series_id, archive, slot, start, count, total, minimum, maximum, last, last_at, counts)
"""
_COUNT = f"""
{_COLUMNS}
SELECT series_id, 0, slot, start, count, total, minimum, maximum, maximum, start, counts::int[]
FROM unnest(
    %(series)s::bigint[], %(slots)s::int[], %(starts)s::timestamptz[], %(counts)s::int[],
    %(totals)s::float8[], %(minima)s::float8[], %(maxima)s::float8[], %(classes)s::text[]
) AS counted(series_id, slot, start, count, total, minimum, maximum, counts)
{_REPLACE}
"""
# The bins of an archive from those of the next finer one, so that sums are the same in both. The
# finer bins are found by their places in the ring, of which some hold what is older.
_FOLD = f"""
WITH finer AS (
    SELECT *, floor(extract(epoch FROM start) / %(step)s)::bigint AS number
    FROM history_bin
    WHERE series_id = ANY(%(series)s::bigint[]) AND archive = %(archive)s - 1
        AND slot = ANY(%(slots)s::int[]) AND start >= %(since)s AND start <= %(until)s
), classes AS (
    SELECT series_id, number, array_agg(many ORDER BY place) AS counts
    FROM (
        SELECT series_id, number, place, sum(many)::int AS many
        FROM finer, unnest(counts) WITH ORDINALITY AS class(many, place)
        GROUP BY series_id, number, place
    ) AS added
    GROUP BY series_id, number
), folded AS (
    SELECT series_id, number, sum(count)::int AS count, sum(total) AS total,
        min(minimum) AS minimum, max(maximum) AS maximum,
        (array_agg(last ORDER BY start DESC))[1] AS last, max(last_at) AS last_at
    FROM finer
    GROUP BY series_id, number
)
{_COLUMNS}
SELECT series_id, %(archive)s, number %% %(turn)s, to_timestamp(number * %(step)s),
    count, total, minimum, maximum, last, last_at, counts
FROM folded LEFT JOIN classes USING (series_id, number)
ORDER BY series_id, number
{_REPLACE}
"""


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted in one minute: how many, or values with how many in each class."""

    series: str
    minute: datetime
    count: int
    total: float
    minimum: float
    maximum: float
    classes: Sequence[int] | None = None

    @classmethod
    def number(cls, series: str, minute: datetime, number: float) -> Counted:
        """So many things of a minute."""
        return cls(series, minute, 1, number, number, number)


@transaction.atomic
def store_samples(values: Mapping[str, float], *, now: datetime) -> None:
    """Put one sample of each series into all archives; unknown series are made."""
    ids = _series_ids(values)
    names = sorted(values)
    with connection.cursor() as cursor:
        for number, archive in enumerate(ARCHIVES):
            cursor.execute(
                _STORE,
                {
                    "archive": number,
                    "slot": archive.slot_of(now),
                    "start": archive.start_of(now),
                    "at": now,
                    "series": [ids[name] for name in names],
                    "values": [float(values[name]) for name in names],
                },
            )


@transaction.atomic
def store_counts(counted: Sequence[Counted]) -> None:
    """Put what was counted in whole minutes into all archives, in place of what was there of them.

    Storing the same again changes nothing. Nothing may be older than what the finest archive holds
    beyond any doubt, half a turn: of older minutes it has forgotten some, and the coarser bins are
    made from it.
    """
    if not counted:
        return
    ids = _series_ids({each.series for each in counted})
    minutes = [each.minute for each in counted]
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, _as_columns(counted, ids))
        for number, (finer, archive) in enumerate(pairwise(ARCHIVES), start=1):
            # Whole bins, whatever part of them was counted anew.
            since = archive.start_of(min(minutes))
            until = archive.end_of(max(minutes)) - timedelta(seconds=finer.step_s)
            cursor.execute(
                _FOLD,
                {
                    "series": sorted(ids.values()),
                    "archive": number,
                    "step": archive.step_s,
                    "turn": archive.slots,
                    "slots": finer.slots_of(since, until),
                    "since": since,
                    "until": until,
                },
            )


def _as_columns(counted: Sequence[Counted], ids: Mapping[str, int]) -> dict[str, Any]:
    # In the order of their rows, so that two who store at once do not wait in a circle.
    rows = sorted(counted, key=lambda each: (ids[each.series], each.minute))
    return {
        "series": [ids[each.series] for each in rows],
        "slots": [ARCHIVES[0].slot_of(each.minute) for each in rows],
        "starts": [each.minute for each in rows],
        "counts": [each.count for each in rows],
        "totals": [float(each.total) for each in rows],
        "minima": [float(each.minimum) for each in rows],
        "maxima": [float(each.maximum) for each in rows],
        "classes": [None if each.classes is None else _array(each.classes) for each in rows],
    }


def _array(numbers: Sequence[int]) -> str:
    return f"{{{','.join(map(str, numbers))}}}"


def _series_ids(names: Collection[str]) -> dict[str, int]:
    ids = dict(Series.objects.filter(name__in=names).values_list("name", "pk"))
    new = [Series(name=name) for name in sorted(names) if name not in ids]
    if new:
        Series.objects.bulk_create(new, ignore_conflicts=True)
        ids = dict(Series.objects.filter(name__in=names).values_list("name", "pk"))
    return ids

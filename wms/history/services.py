"""Storing samples in the rings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import connection, transaction

from matching.rings import ARCHIVES
from wms.history.models import Series

# A sample joins the bin of its time if that is there already, else it overwrites what the ring held
# one turn ago; an older sample than the bin's own time changes nothing. One statement for all
# series of an archive: the ORM's upsert cannot combine the old row with the new one.
_STORE = """
INSERT INTO history_bin AS bin
    (series_id, archive, slot, start, count, total, minimum, maximum, last)
SELECT sample.series_id, %(archive)s, %(slot)s, %(start)s, 1, value, value, value, value
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
    last = excluded.last
WHERE bin.start <= excluded.start
"""


@transaction.atomic
def store_samples(values: Mapping[str, float], *, now: datetime) -> None:
    """Put one sample of each series into all archives; unknown series are made."""
    ids = dict(Series.objects.filter(name__in=values).values_list("name", "pk"))
    new = [Series(name=name) for name in values if name not in ids]
    if new:
        Series.objects.bulk_create(new, ignore_conflicts=True)
        ids = dict(Series.objects.filter(name__in=values).values_list("name", "pk"))
    names = sorted(values)
    with connection.cursor() as cursor:
        for number, archive in enumerate(ARCHIVES):
            cursor.execute(
                _STORE,
                {
                    "archive": number,
                    "slot": archive.slot_of(now),
                    "start": archive.start_of(now),
                    "series": [ids[name] for name in names],
                    "values": [float(values[name]) for name in names],
                },
            )

"""Records of ways: how the latest attempts between two ends did, by their schemes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.db import connection

from wms.placement.sql import WAY_RECORDS
from wms.placement.ways.ordering import Record

#: So long ago attempts count at all, and after so long they count for half.
PERIOD: Final = timedelta(days=1)
HALF_LIFE: Final = timedelta(hours=1)
#: So many of the latest of each two ends are looked at.
_LATEST: Final = 200
#: Of fewer bytes the time tells how long it takes to begin, not how fast it goes.
_LEAST_BYTES: Final = 2**20


class Way(NamedTuple):
    """A way of a transfer: storages, or hosts that are in none, and the schemes used there."""

    source_end: str
    destination_end: str
    source_scheme: str
    destination_scheme: str


def records_of(ways: Collection[Way], now: datetime) -> dict[Way, Record]:
    """Records of these ways, of everybody's transfers. One query."""
    ends = sorted({(each.source_end, each.destination_end) for each in ways})
    with connection.cursor() as cursor:
        cursor.execute(
            WAY_RECORDS,
            {
                "sources": [source for source, _ in ends],
                "destinations": [destination for _, destination in ends],
                "now": now,
                "since": now - PERIOD,
                "half_life": HALF_LIFE.total_seconds(),
                "most": _LATEST,
            },
        )
        rows = cursor.fetchall()
    found = {Way(*row[:4]): _record(*row[4:]) for row in rows}
    return {each: found.get(each, Record()) for each in ways}


def _record(
    tries: int, successes: int, weight: float, good: float, moved: float, time_s: float
) -> Record:
    rate = moved / max(time_s, 0.001) if moved >= _LEAST_BYTES else None
    return Record(tries, successes, weight, good, rate)

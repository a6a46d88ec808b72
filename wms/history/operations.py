"""Operations on round-robin archives: store samples, and counts of whole minutes.

Counts replace earlier ones of the same minutes, and are folded into the coarser archives.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db import connection, transaction

from matching.round_robin_archives import ARCHIVES
from wms.history.models import Series
from wms.history.sql import FOLD_BINS, STORE_COUNTS, STORE_SAMPLES


@dataclass(frozen=True, slots=True)
class MinuteCount:
    """Count of one series in one minute: a number, or values with a number in each class."""

    series: str
    minute: datetime
    count: int
    total: float
    minimum: float
    maximum: float
    classes: Sequence[int] | None = None

    @classmethod
    def number(cls, series: str, minute: datetime, number: float) -> MinuteCount:
        """The count of a minute without classes."""
        return cls(series, minute, 1, number, number, number)


@transaction.atomic
def store_samples(values: Mapping[str, float], *, now: datetime) -> None:
    """Put one sample of each series into all archives; unknown series are made."""
    ids = _series_ids(values)
    names = sorted(values)
    with connection.cursor() as cursor:
        for number, archive in enumerate(ARCHIVES):
            cursor.execute(
                STORE_SAMPLES,
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
def store_counts(counted: Sequence[MinuteCount]) -> None:
    """Put counts of whole minutes into all archives, in place of earlier counts of these minutes.

    Storing the same again changes nothing. Nothing may be older than what the finest archive holds
    beyond any doubt, half a turn: of older minutes it has forgotten some, and the coarser bins are
    made from it.
    """
    if not counted:
        return
    ids = _series_ids({each.series for each in counted})
    minutes = [each.minute for each in counted]
    with connection.cursor() as cursor:
        cursor.execute(STORE_COUNTS, _as_columns(counted, ids))
        for number, (finer, archive) in enumerate(pairwise(ARCHIVES), start=1):
            # Whole bins, whatever part of them was counted anew.
            since = archive.start_of(min(minutes))
            until = archive.end_of(max(minutes)) - timedelta(seconds=finer.step_s)
            cursor.execute(
                FOLD_BINS,
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


def _as_columns(counted: Sequence[MinuteCount], ids: Mapping[str, int]) -> dict[str, Any]:
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

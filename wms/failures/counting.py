"""Counts of failures by group: its total, and bins by hour and day, of all sites and of each.

Failures are added to them, or taken out. Also the removal of old bins, and the beginning of the
hour or day that a time is in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.db.backends.utils import CursorWrapper

from wms.core.database.statements import whole_numbers
from wms.failures.models import FailureBin
from wms.failures.sql import ADD_TO_BINS, ADD_TO_GROUPS, REMOVE_EMPTY_BINS, REMOVE_OLD_BINS

Span = FailureBin.Span
#: For so long bins are kept.
KEPT = {
    Span.HOUR: timedelta(days=8),
    Span.SITE_HOUR: timedelta(days=8),
    Span.DAY: timedelta(days=400),
    Span.SITE_DAY: timedelta(days=400),
}
AT_SITES = {Span.HOUR: Span.SITE_HOUR, Span.DAY: Span.SITE_DAY}
_HOURS = frozenset({Span.HOUR, Span.SITE_HOUR})
#: Old bins removed at once.
_REMOVED_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class CountedFailure:
    """One failure to be counted; with -1 it is taken out of the group again."""

    group_id: int
    site: str
    at: datetime
    number: int = 1


def start_of(span: Span, at: datetime) -> datetime:
    """The beginning of the hour or day (UTC) that a time is in."""
    whole = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return whole if span in _HOURS else whole.replace(hour=0)


def add_counts(counted: Iterable[CountedFailure], *, now: datetime) -> None:
    """Add failures to the counts of their groups; two statements, whose rows are in one order.

    A bin that is not kept any more is not made again.
    """
    bins: Counter[tuple[int, str, datetime, str]] = Counter()
    groups: dict[int, list[CountedFailure]] = defaultdict(list)
    for failure in counted:
        groups[failure.group_id].append(failure)
        for span, kept in KEPT.items():
            if failure.at >= now - kept:
                site = failure.site if span in AT_SITES.values() else ""
                bins[failure.group_id, span.value, start_of(span, failure.at), site] += (
                    failure.number
                )
    with connection.cursor() as cursor:
        _add_to_groups(cursor, groups)
        rows = sorted((*key, count) for key, count in bins.items() if count)
        names = ("groups", "spans", "starts", "sites", "counts")
        if rows:
            columns = [list(column) for column in zip(*rows, strict=True)]
            cursor.execute(ADD_TO_BINS, dict(zip(names, columns, strict=True)))
        if any(row[-1] < 0 for row in rows):
            cursor.execute(REMOVE_EMPTY_BINS, [sorted(groups)])


def _add_to_groups(cursor: CursorWrapper, groups: Mapping[int, list[CountedFailure]]) -> None:
    ids = sorted(groups)
    times = {pk: [each.at for each in groups[pk]] for pk in ids}
    cursor.execute(
        ADD_TO_GROUPS,
        {
            "groups": whole_numbers(ids),
            "counts": [sum(each.number for each in groups[pk]) for pk in ids],
            "firsts": [min(times[pk]) for pk in ids],
            "lasts": [max(times[pk]) for pk in ids],
        },
    )


def remove_old_bins(*, now: datetime) -> int:
    """Remove a batch of bins whose time is over; the number of bins."""
    removed = 0
    with connection.cursor() as cursor:
        for span, kept in KEPT.items():
            oldest = start_of(span, now - kept)
            cursor.execute(REMOVE_OLD_BINS, [span.value, oldest, _REMOVED_AT_ONCE])
            removed += cursor.rowcount
    return removed

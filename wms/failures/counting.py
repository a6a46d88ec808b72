"""The counts of groups: in all, and by site in hours and days, of which only the last are kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.db.backends.utils import CursorWrapper

from wms.core.database.statements import whole_numbers
from wms.failures.models import FailureBin

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
#: So many old bins are removed in one go.
_REMOVED_AT_ONCE = 5000

_ADD_TO_BINS = """
INSERT INTO failures_failurebin AS bin (group_id, span, start, site_name, count)
SELECT * FROM unnest(
    %(groups)s::bigint[], %(spans)s::text[], %(starts)s::timestamptz[], %(sites)s::text[],
    %(counts)s::int[])
ON CONFLICT (group_id, span, start, site_name)
DO UPDATE SET count = bin.count + excluded.count
"""
_ADD_TO_GROUPS = """
UPDATE failures_failuregroup AS g
SET total = g.total + seen.count,
    first_seen = least(g.first_seen, seen.first), last_seen = greatest(g.last_seen, seen.last)
FROM unnest(%(groups)s::bigint[], %(counts)s::int[], %(firsts)s::timestamptz[],
    %(lasts)s::timestamptz[]) AS seen(id, count, first, last)
WHERE g.id = seen.id
"""
_REMOVE_EMPTY = "DELETE FROM failures_failurebin WHERE group_id = ANY(%s) AND count <= 0"
_REMOVE_OLD = """
DELETE FROM failures_failurebin WHERE id IN (
    SELECT id FROM failures_failurebin WHERE span = %s AND start < %s LIMIT %s)
"""


@dataclass(frozen=True, slots=True)
class Counted:
    """One failure as it is counted; with -1 it is taken out of the group again."""

    group_id: int
    site: str
    at: datetime
    number: int = 1


def start_of(span: Span, at: datetime) -> datetime:
    """The beginning of the hour or day (UTC) that a time is in."""
    whole = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return whole if span in _HOURS else whole.replace(hour=0)


def add_counts(counted: Iterable[Counted], *, now: datetime) -> None:
    """Add failures to the counts of their groups; two statements, whose rows are in one order.

    A bin that is not kept any more is not made again.
    """
    bins: Counter[tuple[int, str, datetime, str]] = Counter()
    groups: dict[int, list[Counted]] = defaultdict(list)
    for each in counted:
        groups[each.group_id].append(each)
        for span, kept in KEPT.items():
            if each.at >= now - kept:
                site = each.site if span in AT_SITES.values() else ""
                bins[each.group_id, span.value, start_of(span, each.at), site] += each.number
    with connection.cursor() as cursor:
        _add_to_groups(cursor, groups)
        rows = sorted((*key, count) for key, count in bins.items() if count)
        names = ("groups", "spans", "starts", "sites", "counts")
        if rows:
            columns = [list(column) for column in zip(*rows, strict=True)]
            cursor.execute(_ADD_TO_BINS, dict(zip(names, columns, strict=True)))
        if any(row[-1] < 0 for row in rows):
            cursor.execute(_REMOVE_EMPTY, [sorted(groups)])


def _add_to_groups(cursor: CursorWrapper, groups: Mapping[int, list[Counted]]) -> None:
    ids = sorted(groups)
    times = {pk: [each.at for each in groups[pk]] for pk in ids}
    cursor.execute(
        _ADD_TO_GROUPS,
        {
            "groups": whole_numbers(ids),
            "counts": [sum(each.number for each in groups[pk]) for pk in ids],
            "firsts": [min(times[pk]) for pk in ids],
            "lasts": [max(times[pk]) for pk in ids],
        },
    )


def remove_old_bins(*, now: datetime) -> int:
    """Remove bins that are not kept any more; how many, of a batch."""
    removed = 0
    with connection.cursor() as cursor:
        for span, kept in KEPT.items():
            oldest = start_of(span, now - kept)
            cursor.execute(_REMOVE_OLD, [span.value, oldest, _REMOVED_AT_ONCE])
            removed += cursor.rowcount
    return removed

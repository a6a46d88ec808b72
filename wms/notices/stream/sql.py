"""SQL of the stream of events: the transactions that are under way, and that of a row."""

from __future__ import annotations

from django.db.models import BigIntegerField, Case, F, Func, Value, When
from django.db.models.expressions import Combinable

# By hand, because the ORM has no name for it; it reads no table. Numbers of transactions are whole
# ones, with the epoch, and so only rise.
READ_SNAPSHOT = """
SELECT pg_snapshot_xmin(seen)::text::bigint, pg_snapshot_xmax(seen)::text::bigint
FROM pg_current_snapshot() AS seen
"""
_EPOCH = 2**32


class StoredNumber(Func):
    """Number of the transaction that wrote a row, as the row has it: without the epoch."""

    template = '"%(table)s".xmin::text::bigint'
    output_field = BigIntegerField()


def written_by(newest: int) -> Combinable:
    """Number of the transaction that wrote a row, from its `stored`; `newest` is yet to come."""
    epoch, within = newest - newest % _EPOCH, newest % _EPOCH
    bigint = BigIntegerField()
    start = Case(
        When(stored__lte=within, then=Value(epoch)),
        default=Value(epoch - _EPOCH),
        output_field=bigint,
    )
    return F("stored") + start

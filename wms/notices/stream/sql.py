"""SQL of the stream of events: transactions under way, that of a row, the latest numbers."""

from __future__ import annotations

from django.db.models import BigIntegerField, Case, F, Func, Value, When
from django.db.models.expressions import Combinable

# By hand, because the ORM has no names for these; no table is read. Numbers of transactions are
# whole ones, with the epoch, and so only rise: the short ones of sessions are told from the newest
# one, from which they are less than 2^31 away. Only this database counts: what is under way in
# others of the server writes no event here. The snapshot of the statement is older than what it
# reads of the sessions, so a transaction below `newest` is either seen under way or over.
READ_SNAPSHOT = """
SELECT coalesce(least(newest, (
    SELECT min(newest + (held::text::bigint - newest % 4294967296 + 6442450944) % 4294967296
               - 2147483648)
    FROM (SELECT backend_xid AS held FROM pg_stat_activity WHERE datname = current_database()
          UNION ALL
          SELECT transaction FROM pg_prepared_xacts WHERE database = current_database()) AS sessions
    WHERE held IS NOT NULL
)), newest), newest
FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS newest) AS seen
"""
# Within a transaction the sessions would be told as they were when they were read first.
FORGET_SESSIONS = "SELECT pg_stat_clear_snapshot()"
# By hand: the ORM knows no sequences. Some of these tables have no index of their numbers alone, so
# the highest one of a row would be looked for in all of them. No table is read.
READ_NUMBERS = """
SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence(name, 'id')::regclass), 0)
FROM unnest(%s::text[]) WITH ORDINALITY AS tables (name, place) ORDER BY place
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

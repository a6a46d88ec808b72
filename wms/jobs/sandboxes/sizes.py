"""Sizes of the outputs kept for clusters: entries for files that come or go, and their sum.

Also the folding of entries into one for each cluster.
"""

from __future__ import annotations

from django.db import connection
from django.db.models import Q, Sum

from wms.jobs.models import OutputBytes
from wms.jobs.sql import FOLD_OUTPUT_BYTES

#: Entries that are added up in one statement.
_FOLDED_AT_ONCE = 20_000


def note_bytes(cluster_id: int, size_bytes: int) -> None:
    """Count bytes that came to a cluster, or went, in the transaction that changes the files."""
    if size_bytes:
        OutputBytes.objects.create(cluster_id=cluster_id, size_bytes=size_bytes)


def fold_bytes() -> int:
    """Add up a portion of the entries; their number."""
    with connection.cursor() as cursor:
        cursor.execute(FOLD_OUTPUT_BYTES, {"most": _FOLDED_AT_ONCE})
        return int(cursor.fetchone()[0])


def kept_bytes(of: Q) -> int:
    """Bytes of the outputs that are kept for clusters under a condition on these.

    Such as `Q(cluster__owner=user)` or `Q(cluster__accounting_group=group)`. A file counts as often
    as jobs sent it, though equal contents are stored once. Reads a row for each cluster, and those
    of the last minute.
    """
    total = OutputBytes.objects.filter(of).aggregate(total=Sum("size_bytes"))["total"]
    return max(0, total or 0)

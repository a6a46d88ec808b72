"""Logs of pilots: pieces stored as they come, read, and removed long after the pilot's end."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db import transaction

from wms.core.storage.contents import GrowingContent
from wms.core.storage.copying import Extent, GrowingRows
from wms.core.storage.current import writable_store
from wms.core.storage.protocol import Growing
from wms.jobs.output.streams import KEPT, SWEPT_AT_ONCE, add_piece, growing_text
from wms.jobs.output.texts import StoredText
from wms.pilots.models import PilotLog


def log_file(pilot_id: int) -> Growing:
    """File of a pilot's log."""
    return growing_text("pilot-logs", pilot_id)


def log_text(log: PilotLog) -> StoredText:
    """Text of a pilot's log as stored up to now."""
    return StoredText(GrowingContent(log_file(log.pk)), log.size_bytes)


@transaction.atomic
def append_to_log(pilot_id: int, *, offset: int, content: bytes, now: datetime) -> int:
    """Store a piece of a pilot's log, after its end too; return how many bytes are stored.

    Raises PieceMissing and TooLarge.
    """
    log, _ = PilotLog.objects.select_for_update().get_or_create(pilot_id=pilot_id)
    size_bytes = add_piece(log_file(pilot_id), content, offset=offset, size_bytes=log.size_bytes)
    if size_bytes != log.size_bytes:
        PilotLog.objects.filter(pk=pilot_id).update(size_bytes=size_bytes, updated_at=now)
    return size_bytes


def sweep_logs(*, now: datetime) -> int:
    """Remove logs of pilots that ended long ago; return how many."""
    over = PilotLog.objects.filter(pilot__ended_at__lt=now - KEPT)
    sizes = dict(over.values_list("pk", "size_bytes")[:SWEPT_AT_ONCE])
    if not sizes:
        return 0
    writable_store().remove_grown((log_file(pk), size) for pk, size in sizes.items())
    PilotLog.objects.filter(pk__in=sizes).delete()
    return len(sizes)


def _extent(log: PilotLog) -> Extent:
    return Extent(log_file(log.pk), ((0, log.size_bytes),))


#: All logs of pilots.
LOG_EXTENTS: Final = GrowingRows(PilotLog.objects.all, _extent)

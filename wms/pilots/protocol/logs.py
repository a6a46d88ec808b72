"""Logs of pilots: pieces stored as they come, read, and removed long after the pilot's end."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from django.db import transaction

from wms.jobs.output.streams import (
    KEPT,
    SWEPT_AT_ONCE,
    add_piece,
    appendable_path,
    remove_files,
)
from wms.jobs.output.texts import StoredText
from wms.pilots.models import PilotLog


def log_path(pilot_id: int) -> Path:
    """File of a pilot's log."""
    return appendable_path("pilot-logs", pilot_id)


def log_text(log: PilotLog) -> StoredText:
    """Text of a pilot's log as stored up to now."""
    return StoredText(log_path(log.pk), log.size_bytes)


@transaction.atomic
def append_to_log(pilot_id: int, *, offset: int, content: bytes, now: datetime) -> int:
    """Store a piece of a pilot's log, after its end too; return how many bytes are stored.

    Raises PieceMissing and TooLarge.
    """
    log, _ = PilotLog.objects.select_for_update().get_or_create(pilot_id=pilot_id)
    size_bytes = add_piece(log_path(pilot_id), content, offset=offset, size_bytes=log.size_bytes)
    if size_bytes != log.size_bytes:
        PilotLog.objects.filter(pk=pilot_id).update(size_bytes=size_bytes, updated_at=now)
    return size_bytes


def sweep_logs(*, now: datetime) -> int:
    """Remove logs of pilots that ended long ago; return how many."""
    over = PilotLog.objects.filter(pilot__ended_at__lt=now - KEPT)
    ids = list(over.values_list("pk", flat=True)[:SWEPT_AT_ONCE])
    remove_files(map(log_path, ids))
    PilotLog.objects.filter(pk__in=ids).delete()
    return len(ids)

"""Sending contents of the store."""

from __future__ import annotations

import posixpath
from pathlib import Path

from django.http import FileResponse, HttpResponse

from wms.jobs.blobs import open_blob, read_tail
from wms.jobs.models import Blob
from wms.jobs.streams import tail_of

#: What is shown of a log unless all of it is asked for.
TAIL_BYTES = 64 * 1024


def send_blob(blob: Blob, *, name: str) -> FileResponse:
    """Send a content in constant memory. It is never shown by a browser: users wrote it."""
    answer = FileResponse(
        open_blob(blob.sha256),
        as_attachment=True,
        filename=posixpath.basename(name),
        content_type="application/octet-stream",
    )
    answer["X-Content-SHA256"] = blob.sha256
    return answer


def send_growing_tail(path: Path, size_bytes: int) -> HttpResponse:
    """Send the end of what grows by pieces, with the size of all that is here."""
    return _tail(tail_of(path, size_bytes, limit_bytes=TAIL_BYTES), size_bytes)


def send_tail(blob: Blob) -> HttpResponse:
    """Send the end of a text, with the size of the whole in `X-Full-Size-Bytes`."""
    return _tail(read_tail(blob.sha256, limit_bytes=TAIL_BYTES), blob.size_bytes)


def _tail(text: str, size_bytes: int) -> HttpResponse:
    answer = HttpResponse(text, content_type="text/plain; charset=utf-8")
    answer["X-Full-Size-Bytes"] = str(size_bytes)
    return answer

"""Download responses for stored contents."""

from __future__ import annotations

import posixpath

from django.http import FileResponse

from wms.jobs.content.blobs import open_blob
from wms.jobs.models import Blob

#: What is shown of a log unless all of it is asked for.
TAIL_BYTES = 64 * 1024


def send_blob(blob: Blob, *, name: str) -> FileResponse:
    """Content as a streamed attachment; a browser never displays it, since users wrote it."""
    answer = FileResponse(
        open_blob(blob.sha256),
        as_attachment=True,
        filename=posixpath.basename(name),
        content_type="application/octet-stream",
    )
    answer["X-Content-SHA256"] = blob.sha256
    return answer

"""Download response for a stored content (blob), streamed as an attachment.

Also the default length of the end of a log (`TAIL_BYTES`).
"""

from __future__ import annotations

import posixpath

from django.http import FileResponse

from wms.jobs.content.blobs import open_blob
from wms.jobs.models import Blob

#: What is shown of a log unless all of it is asked for.
TAIL_BYTES = 64 * 1024


def send_blob(blob: Blob, *, name: str) -> FileResponse:
    """Content of a file as a streamed attachment."""
    return send_content(blob.sha256, name=name)


def send_content(sha256: str, *, name: str) -> FileResponse:
    """Content as a streamed attachment; a browser never displays it, since users wrote it."""
    answer = FileResponse(
        open_blob(sha256),
        as_attachment=True,
        filename=posixpath.basename(name),
        content_type="application/octet-stream",
    )
    answer["X-Content-SHA256"] = sha256
    return answer

"""Sending what grew by pieces, in constant memory: output of payloads, logs of pilots."""

from __future__ import annotations

from pathlib import Path

from django.http import StreamingHttpResponse

from wms.jobs.streams import chunks_of


def send_growing(path: Path, size_bytes: int, *, name: str) -> StreamingHttpResponse:
    """Send what is here as a download. It is never shown by a browser: users wrote it."""
    answer = StreamingHttpResponse(
        chunks_of(path, size_bytes), content_type="application/octet-stream"
    )
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer

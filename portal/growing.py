"""Sending what grew by pieces, in constant memory: output of payloads, logs of pilots."""

from __future__ import annotations

import re
from pathlib import Path

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from wms.jobs.streams import chunks_of

_RANGE = re.compile(r"bytes=([0-9]{1,18})?-([0-9]{1,18})?\Z")


def send_growing(
    request: HttpRequest, path: Path, size_bytes: int, *, name: str
) -> HttpResponseBase:
    """Send what is here as a download, or the range of it that is asked for.

    It is never shown by a browser: users wrote it. Of several ranges none is sent, but the whole.
    """
    asked = _RANGE.match(request.headers.get("Range", ""))
    if asked is None or not any(asked.groups()):
        answer = _download(path, 0, size_bytes, name)
    else:
        start, end = _bounds(asked[1], asked[2], size_bytes)
        if start >= end:
            unsatisfied = {"Content-Range": f"bytes */{size_bytes}"}
            return HttpResponse(status=416, headers=unsatisfied)
        answer = _download(path, start, end, name)
        answer.status_code = 206
        answer["Content-Range"] = f"bytes {start}-{end - 1}/{size_bytes}"
    answer["Accept-Ranges"] = "bytes"
    return answer


def _bounds(first: str | None, last: str | None, size_bytes: int) -> tuple[int, int]:
    """From where to where, the end left out; without a first one it is the last so many bytes."""
    if not first:
        return max(0, size_bytes - int(last or 0)), size_bytes
    return int(first), min(size_bytes, int(last) + 1) if last else size_bytes


def _download(path: Path, start: int, end: int, name: str) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(
        chunks_of(path, end, start=start), content_type="application/octet-stream"
    )
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer

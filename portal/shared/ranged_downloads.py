"""Download response of a text or content, or of the range that is asked for (HTTP Range).

Used for output of payloads, logs of pilots and stored contents; in constant memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header

from wms.core.errors import NotFound
from wms.jobs.output.texts import Text, chunks_of

_RANGE = re.compile(r"bytes=([0-9]{1,18})?-([0-9]{1,18})?\Z")


_CHUNK_BYTES = 256 * 1024


def send_in_pieces(request: HttpRequest, text: Text, *, name: str) -> HttpResponseBase:
    """Download of a text, or of the range of it that is asked for.

    It is never shown by a browser: users wrote it. Of several ranges none is sent, but the whole;
    so it is where some is missing, which a line tells.
    """
    size_bytes = text.size_bytes
    range_match = asked_range(request)
    if range_match is None or text.gaps:
        answer = _download(text, 0, size_bytes, name)
    else:
        start, end = _bounds(range_match[1], range_match[2], size_bytes)
        if start >= end:
            unsatisfied = {"Content-Range": f"bytes */{size_bytes}"}
            return HttpResponse(status=416, headers=unsatisfied)
        answer = _download(text, start, end, name)
        answer.status_code = 206
        answer["Content-Range"] = f"bytes {start}-{end - 1}/{size_bytes}"
    answer["Accept-Ranges"] = "bytes"
    return answer


def asked_range(request: HttpRequest) -> re.Match[str] | None:
    """The one range that is asked for, as its ends were written."""
    found = _RANGE.match(request.headers.get("Range", ""))
    return found if found is not None and any(found.groups()) else None


def _bounds(first: str | None, last: str | None, size_bytes: int) -> tuple[int, int]:
    """From where to where, the end left out; without a first one it is the last so many bytes."""
    if not first:
        return max(0, size_bytes - int(last or 0)), size_bytes
    return int(first), min(size_bytes, int(last) + 1) if last else size_bytes


def _what_is_there(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Up to what the disk has lost: the answer has begun."""
    with suppress(NotFound):
        yield from chunks


def _download(text: Text, start: int, end: int, name: str) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(
        _what_is_there(chunks_of(text, _CHUNK_BYTES, start=start, end=end)),
        content_type="application/octet-stream",
    )
    answer["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    return answer

"""Responses with part of a log as text: its end, or what follows an offset, to follow its growth.

Also the query parameters of these endpoints in the schema.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, HttpResponseNotModified
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request

from portal.api.downloads import TAIL_BYTES
from portal.shared.readable_logs import Log
from wms.jobs.output.texts import part_after, part_before

#: One answer has at most so much.
MAX_BYTES = 1024 * 1024
_MAX_PLACE = 2**62


class _PlaceSerializer(serializers.Serializer[Any]):
    """Query parameters: the offset or the length of the end of a log."""

    offset = serializers.IntegerField(required=False, min_value=0, max_value=_MAX_PLACE)
    limit_bytes = serializers.IntegerField(required=False, min_value=1, max_value=MAX_BYTES)
    tail = serializers.IntegerField(required=False, min_value=1, max_value=MAX_BYTES)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """From a place on, or the end: not both."""
        if "tail" in attrs and ("offset" in attrs or "limit_bytes" in attrs):
            raise serializers.ValidationError({"tail": "not together with offset or limit_bytes"})
        return attrs


PLACE_PARAMETERS = [
    OpenApiParameter("full", OpenApiTypes.INT, description="1: all of it, as a download"),
    OpenApiParameter(
        "tail", OpenApiTypes.INT, description="the last so many bytes; default 65536, at most 1 MiB"
    ),
    OpenApiParameter(
        "offset",
        OpenApiTypes.INT,
        description="from this byte on; to follow, ask again from `X-Next-Offset`",
    ),
    OpenApiParameter(
        "limit_bytes", OpenApiTypes.INT, description="with `offset`: at most so many; at most 1 MiB"
    ),
    *[
        OpenApiParameter(
            name, OpenApiTypes.INT, location=OpenApiParameter.HEADER, response=[200],
            description=meaning,
        )
        for name, meaning in (
            ("X-Full-Size-Bytes", "how much of it is here"),
            ("X-Offset", "where the answer begins; what is between `offset` and it is not here"),
            ("X-Next-Offset", "where the answer ends, and the next one may begin"),
            ("X-Is-Growing", "1 while more may come, 0 when it has ended"),
        )
    ],
]  # fmt: skip


def send_part(request: Request, log: Log) -> HttpResponse:
    """Response with the end of a log, or with what follows an offset; 304 if it is unchanged.

    UTF-8 characters are never split, so consecutive parts make up the whole.
    """
    query = _PlaceSerializer(data=request.query_params)
    query.is_valid(raise_exception=True)
    place = query.validated_data
    if log.is_known_by(request.headers.get("If-None-Match")):
        return HttpResponseNotModified(headers={"ETag": log.etag})
    size_bytes = log.text.size_bytes
    if "offset" in place:
        start, length = place["offset"], place.get("limit_bytes", TAIL_BYTES)
    else:
        length = place.get("tail", place.get("limit_bytes", TAIL_BYTES))
        begin, _ = part_before(log.text, size_bytes)
        start = max(begin, size_bytes - length)
    if start < size_bytes:
        start, _ = part_after(log.text, start)
    content = log.text.read(start, length)
    if "offset" not in place and start > 0:
        start, content = _from_character(start, content)
    if start + len(content) < size_bytes or log.is_growing:
        content = _whole_characters(content)
    answer = HttpResponse(
        content.decode("utf-8", errors="replace"), content_type="text/plain; charset=utf-8"
    )
    answer["X-Full-Size-Bytes"] = str(size_bytes)
    answer["X-Offset"] = str(start)
    answer["X-Next-Offset"] = str(start + len(content))
    answer["X-Is-Growing"] = "1" if log.is_growing else "0"
    answer["ETag"] = log.etag
    return answer


def _from_character(start: int, content: bytes) -> tuple[int, bytes]:
    """Content without the rest of a UTF-8 character that begins before it."""
    rest = next((n for n, byte in enumerate(content[:4]) if byte & 0xC0 != 0x80), 0)
    return start + rest, content[rest:]


def _whole_characters(content: bytes) -> bytes:
    """Content without an incomplete UTF-8 character at its end; at least one byte."""
    for back in range(1, min(4, len(content)) + 1):
        byte = content[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return (content[:-back] or content) if length > back else content
    return content

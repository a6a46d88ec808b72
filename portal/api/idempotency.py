"""Idempotency keys of creating requests: header in the schema, and answers to repetitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from wms.core.idempotency import RequestKey, content_sha256
from wms.core.models import MadeKind

_NAME = "Idempotency-Key"
IDEMPOTENCY_KEY = OpenApiParameter(
    _NAME,
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="Sent again with the same content within 24 hours, nothing new is made: the answer "
    "has what was made the first time, status 200 and the header `Idempotency-Replayed: true`. "
    "With another content it is refused (409).",
)


def sent_key(request: Request) -> str | None:
    """The key that was sent, if one was."""
    return request.headers.get(_NAME)


def request_key(request: Request, kind: MadeKind, content: Mapping[str, Any]) -> RequestKey | None:
    """Key of a request without files, whose content this is; None where none was sent."""
    key = sent_key(request)
    return RequestKey(kind, key, content_sha256(content, {})) if key is not None else None


def created(body: Any, *, at: str, is_new: bool) -> Response:
    """Answer with what was made now (201), or by an equal request before (200), and its address."""
    headers = {"Location": at}
    if is_new:
        return Response(body, status=status.HTTP_201_CREATED, headers=headers)
    return Response(body, headers=headers | {"Idempotency-Replayed": "true"})

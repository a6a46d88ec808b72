"""Middleware that gives each request an id, for the log, the audit trail and the response."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponseBase

HEADER = "X-Request-ID"
#: What a proxy in front may say; anything else is replaced, since it ends up in the log.
_GIVEN = re.compile(r"[A-Za-z0-9_.-]{8,64}\Z")


class NamedRequests:
    """Middleware that names each request; a proxy may have named it before."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer with the name in a header, and log and audit under it meanwhile."""
        given = request.headers.get(HEADER, "")
        name = given if _GIVEN.match(given) else secrets.token_hex(8)
        request.request_id = name  # type: ignore[attr-defined]
        with structlog.contextvars.bound_contextvars(request_id=name):
            response = self._get_response(request)
        response.headers[HEADER] = name
        return response

"""Middleware that limits the size of request bodies, and one that keeps answers out of caches.

The API, pilots and factories have limits of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponseBase

from portal.middleware.errors import refused
from wms.core.conf import conf

#: A form of somebody who is not logged in is a login form.
ANONYMOUS_BODY_BYTES = 64 * 1024
#: These have tokens instead of sessions, and bounds of their own.
_OTHER_FACES = ("/api/", "/pilot/", "/factory/")

_View = Callable[[HttpRequest], HttpResponseBase]


class BoundedRequests:
    """Middleware that refuses what nobody should read, before the CSRF check or a view reads it."""

    def __init__(self, get_response: _View) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer 413 for a large body, before anything of it is read."""
        if not request.path.startswith(_OTHER_FACES):
            announced = request.META.get("CONTENT_LENGTH") or "0"
            if announced != "0" and not _is_within(announced, request):
                return refused(request, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return self._get_response(request)


class PrivateAnswers:
    """Middleware that keeps answers out of shared caches and out of the browser after a logout."""

    def __init__(self, get_response: _View) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Forbid keeping an answer, unless its view has said what may be kept."""
        response = self._get_response(request)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response


def _is_within(announced: str, request: HttpRequest) -> bool:
    if not announced.isascii() or not announced.isdigit():
        return False
    size_bytes = int(announced[:20])
    if size_bytes <= ANONYMOUS_BODY_BYTES:
        return True
    return request.user.is_authenticated and size_bytes <= conf().max_upload_bytes

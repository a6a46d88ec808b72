"""What strangers may send, and what others may keep of the answers."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponseBase

from portal.errors import not_found, refused
from portal.guessing import is_locked_out
from wms.core.conf import conf

#: A form of somebody who is not logged in is a login form.
ANONYMOUS_BODY_BYTES = 64 * 1024
#: These have tokens instead of sessions, and bounds of their own.
_OTHER_FACES = ("/api/", "/pilot/")

_View = Callable[[HttpRequest], HttpResponseBase]


class BoundedRequests:
    """Middleware that refuses what nobody should read, before the CSRF check or a view reads it."""

    def __init__(self, get_response: _View) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer 404 or 400 for zero bytes, 413 for a large body, 429 for too many guesses.

        Text in the database contains no zero byte, so an address with one names nothing.
        """
        if "\0" in request.path:
            return not_found(request, Http404())
        if "\0" in request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""):
            return refused(
                request, HTTPStatus.BAD_REQUEST, "The session cookie is not one of ours."
            )
        if not request.path.startswith(_OTHER_FACES):
            announced = request.META.get("CONTENT_LENGTH") or "0"
            if announced != "0" and not _is_within(announced, request):
                return refused(request, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            is_guess = request.method == "POST" and not request.user.is_authenticated
            if is_guess and is_locked_out(request):
                return refused(
                    request,
                    HTTPStatus.TOO_MANY_REQUESTS,
                    "Too many wrong passwords were given for this account or from this address.",
                )
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

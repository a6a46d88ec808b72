"""Middleware that answers 304 to a program that has the same answer of the API already.

The tag is a hash of the answer, so it is right whatever the answer is made of. It spares the way,
not the work. Files that are sent in pieces have none.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response, set_response_etag

_API = "/api/"
_View = Callable[[HttpRequest], HttpResponseBase]


class UnchangedAnswers:
    """Middleware that adds `ETag` to what the API answers, and obeys `If-None-Match`."""

    def __init__(self, get_response: _View) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The answer, or 304 without a body where it is what the program has."""
        response = self._get_response(request)
        if not _is_tagged(request, response):
            return response
        set_response_etag(response)
        if "Authorization" in request.headers:
            # A program keeps what it likes; a browser forgets it with the logout.
            response.headers["Cache-Control"] = "private, no-cache"
        found: HttpResponseBase = get_conditional_response(
            request, etag=response["ETag"], response=response
        )
        return found


def _is_tagged(request: HttpRequest, response: HttpResponseBase) -> bool:
    return (
        request.method == "GET"
        and request.path.startswith(_API)
        and response.status_code == HTTPStatus.OK
        and isinstance(response, HttpResponse)
        and bool(response.content)
        and "Cache-Control" not in response.headers
        and "ETag" not in response.headers
    )

"""Requests that no view answers: pages for people, problem details below `/api/`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from http import HTTPStatus

from django.core.exceptions import RequestDataTooBig, TooManyFilesSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from portal.api.problems import problem_without_view
from portal.error_pages import STALE_FORM, TROUBLES, Trouble, error_page

API = "/api/"
#: These answer programs, in forms of their own.
_OTHER_FACES = (API, "/pilot/", "/health/")
#: So long a browser or program should wait before it asks again, in seconds.
_RETRY_S = "10"


class ErrorPages:
    """Middleware that gives refusals without a content a page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer as usual; a method that is not allowed is told in words."""
        response = self._get_response(request)
        if (
            response.status_code != HTTPStatus.METHOD_NOT_ALLOWED
            or request.path.startswith(_OTHER_FACES)
            or request.method == "HEAD"
        ):
            return response
        page = error_page(request, HTTPStatus.METHOD_NOT_ALLOWED)
        page["Allow"] = response.headers.get("Allow", "")
        return page


def refused(request: HttpRequest, status: HTTPStatus, detail: str = "") -> HttpResponse:
    """The page of a refusal, or its problem details for the API."""
    if request.path.startswith(API):
        return problem_without_view(status, detail or TROUBLES[status].detail)
    return error_page(request, status, detail=detail)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The request cannot be read, is too large, or is for another host."""
    if isinstance(exception, RequestDataTooBig | TooManyFilesSent):
        return refused(request, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return refused(request, HTTPStatus.BAD_REQUEST)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The user may not do this."""
    return refused(request, HTTPStatus.FORBIDDEN)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The form does not belong to this login."""
    trouble: Trouble = STALE_FORM
    if request.path.startswith(API):
        return problem_without_view(HTTPStatus.FORBIDDEN, f"{trouble.detail} {trouble.advice}")
    return error_page(request, HTTPStatus.FORBIDDEN, trouble=trouble)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The address names nothing."""
    if request.path.startswith(API):
        return problem_without_view(HTTPStatus.NOT_FOUND, "There is no such address.")
    return error_page(request, HTTPStatus.NOT_FOUND)


def server_error(request: HttpRequest) -> HttpResponse:
    """A fault of ours, or a database that is away."""
    if not isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return refused(request, HTTPStatus.INTERNAL_SERVER_ERROR)
    answer = refused(request, HTTPStatus.SERVICE_UNAVAILABLE)
    answer["Retry-After"] = _RETRY_S
    return answer

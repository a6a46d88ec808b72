"""Error handlers of Django (400, 403, 404, 500, CSRF): pages, or problem details for programs.

Programs are those that call /api/, /pilot/, /factory/, /health/ and /metrics (for 404 and CSRF only
/api/). A fault may also be a database that is away (503) or that refused a value (400). Also the
answer of other middleware that refuses a request, and the middleware that gives a page to methods
that are not allowed (405).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from http import HTTPStatus

import structlog
from django.core.exceptions import RequestDataTooBig, TooManyFilesSent
from django.db import DataError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from portal.middleware.error_pages import (
    REFUSED,
    STALE_FORM,
    TROUBLES,
    StatusExplanation,
    error_page,
)
from portal.shared.problem_details import problem_without_view
from wms.core.errors import Finding

log = structlog.get_logger(__name__)

API = "/api/"
#: These answer programs, in forms of their own.
OTHER_FACES = (API, "/pilot/", "/factory/", "/health/", "/metrics")
#: So long a browser or program should wait before it asks again, in seconds: not all equally long,
#: so that they do not come back together.
_RETRY_S = range(5, 16)


class ErrorPages:
    """Middleware that gives refusals without a content a page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer as usual; a method that is not allowed is told in words."""
        response = self._get_response(request)
        if (
            response.status_code != HTTPStatus.METHOD_NOT_ALLOWED
            or request.path.startswith(OTHER_FACES)
            or request.method == "HEAD"
        ):
            return response
        page = error_page(request, HTTPStatus.METHOD_NOT_ALLOWED)
        page["Allow"] = response.headers.get("Allow", "")
        return page


def refused(
    request: HttpRequest, status: HTTPStatus, detail: str = "", *, findings: Sequence[Finding] = ()
) -> HttpResponse:
    """The page of a refusal, or its problem details for programs."""
    if request.path.startswith(OTHER_FACES):
        return problem_without_view(status, detail or TROUBLES[status].detail, findings)
    return error_page(request, status, trouble=REFUSED if findings else None, detail=detail)


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
    trouble: StatusExplanation = STALE_FORM
    if request.path.startswith(API):
        return problem_without_view(HTTPStatus.FORBIDDEN, f"{trouble.detail} {trouble.advice}")
    return error_page(request, HTTPStatus.FORBIDDEN, trouble=trouble)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The address names nothing."""
    if request.path.startswith(API):
        return problem_without_view(HTTPStatus.NOT_FOUND, "There is no such address.")
    return error_page(request, HTTPStatus.NOT_FOUND)


def server_error(request: HttpRequest) -> HttpResponse:
    """A fault of ours, a database that is away, or a value that it refused."""
    error = sys.exc_info()[1]
    if isinstance(error, DataError):
        return _unstorable(request, error)
    if not isinstance(error, OperationalError | InterfaceError):
        return refused(request, HTTPStatus.INTERNAL_SERVER_ERROR)
    answer = refused(request, HTTPStatus.SERVICE_UNAVAILABLE)
    answer["Retry-After"] = str(random.choice(_RETRY_S))
    return answer


def _unstorable(request: HttpRequest, error: DataError) -> HttpResponse:
    """A value came past all checks and the database refused it: nothing was changed.

    It is the sender's value, and a check of ours that is missing: so it is logged as an error.
    """
    log.error("unstorable_value_reached_the_database", path=request.path, error=str(error))
    detail = "A value that was sent cannot be stored: it is too large or too long."
    return refused(request, HTTPStatus.BAD_REQUEST, detail)

"""Exchange with remote factories, other installations that submit pilots for this one.

They call with a token of their own; a fault is answered as problem details (RFC 9457).
"""

from __future__ import annotations

import json
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from wms.core.errors import InvalidInput, NotAuthenticated, PilotageError, TooLarge
from wms.factories.messages import MOST_REPORT_BYTES, Report, as_json, report_of
from wms.pilots.factories.answering import answer_factory


@csrf_exempt
def exchange(request: HttpRequest) -> HttpResponse:
    """Take a factory's report and answer with its orders; repeating it changes nothing.

    A factory holds no cookie, so there is no request that a browser could be tricked into sending.
    """
    if request.method != "POST":
        answer = _problem(HTTPStatus.METHOD_NOT_ALLOWED, "Use POST.")
        answer["Allow"] = "POST"
        return answer
    try:
        name, token = _credential_of(request)
        orders = answer_factory(name, token, _report_in(request), timezone.now())
    except PilotageError as error:
        return _problem_of(error)
    answer = JsonResponse(as_json(orders))
    answer["Cache-Control"] = "no-store"
    return answer


def _credential_of(request: HttpRequest) -> tuple[str, str]:
    """Name and token of the factory. Raises NotAuthenticated."""
    scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
    name, _, token = credential.partition(":")
    if scheme.lower() != "bearer" or not name or not token or "\0" in name:
        raise NotAuthenticated
    return name, token


def _report_in(request: HttpRequest) -> Report:
    content = request.read(MOST_REPORT_BYTES + 1)
    if len(content) > MOST_REPORT_BYTES:
        raise TooLarge(f"The report is larger than {MOST_REPORT_BYTES} bytes.")
    try:
        return report_of(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise InvalidInput.of(f"the report is not JSON: {error}") from error


def _problem_of(error: PilotageError) -> HttpResponse:
    if isinstance(error, NotAuthenticated):
        # Nothing that helps somebody who tries credentials out.
        answer = _problem(HTTPStatus.UNAUTHORIZED, "The factory or its token is not accepted.")
        answer["WWW-Authenticate"] = "Bearer"
        return answer
    return _problem(HTTPStatus(error.status), str(error))


def _problem(status: HTTPStatus, detail: str) -> HttpResponse:
    body = {"type": "about:blank", "title": status.phrase, "status": status, "detail": detail}
    return JsonResponse(body, status=status, content_type="application/problem+json")

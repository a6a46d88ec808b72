"""Exchange between factories and frontends, installations that submit pilots and have the jobs.

Whichever of two calls the other does it with a token; a fault is answered as problem details (RFC
9457). A caller holds no cookie, so there is no request that a browser could be tricked into.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from wms.core.errors import InvalidInput, NotAuthenticated, PilotageError, TooLarge
from wms.factories.messages import (
    MOST_ORDERS_BYTES,
    MOST_QUESTION_BYTES,
    MOST_REPORT_BYTES,
    as_json,
    orders_of,
    question_of,
    report_of,
    turn_of,
)
from wms.pilots.factories.answering import answer_factory
from wms.pilots.factories.listening import take_orders, tell_caller

#: Answer to a call: name and token of the caller, and the document that it sent.
Answerer = Callable[[str, str, object], dict[str, Any]]


def _call(*, most_bytes: int) -> Callable[[Answerer], Callable[[HttpRequest], HttpResponse]]:
    """View of a call with a JSON document of so many bytes at most; repeating one is harmless."""

    def as_view(answer: Answerer) -> Callable[[HttpRequest], HttpResponse]:
        @csrf_exempt
        @wraps(answer)
        def view(request: HttpRequest) -> HttpResponse:
            if request.method != "POST":
                refusal = _problem(HTTPStatus.METHOD_NOT_ALLOWED, "Use POST.")
                refusal["Allow"] = "POST"
                return refusal
            try:
                name, token = _credential_of(request)
                answered = JsonResponse(answer(name, token, _document(request, most_bytes)))
            except PilotageError as error:
                return _problem_of(error)
            answered["Cache-Control"] = "no-store"
            return answered

        return view

    return as_view


@_call(most_bytes=MOST_REPORT_BYTES)
def exchange(name: str, token: str, document: object) -> dict[str, Any]:
    """Take the report of a factory that calls, and answer with its orders."""
    return as_json(answer_factory(name, token, report_of(document), timezone.now()))


@_call(most_bytes=MOST_QUESTION_BYTES)
def report(name: str, token: str, document: object) -> dict[str, Any]:
    """Answer a frontend that calls with the report of this factory, which begins a turn."""
    question = question_of(document)
    turn, made = tell_caller(name, token, question.instance, timezone.now())
    return as_json(made, turn=turn)


@_call(most_bytes=MOST_ORDERS_BYTES)
def orders(name: str, token: str, document: object) -> dict[str, Any]:
    """Take the orders of a frontend that calls, which end its turn."""
    brought = orders_of(document)
    return {"new": take_orders(name, token, turn_of(document), brought, timezone.now())}


def _credential_of(request: HttpRequest) -> tuple[str, str]:
    """Name and token of the caller. Raises NotAuthenticated."""
    scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
    name, _, token = credential.partition(":")
    if scheme.lower() != "bearer" or not name or not token or "\0" in name:
        raise NotAuthenticated
    return name, token


def _document(request: HttpRequest, most_bytes: int) -> object:
    content = request.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise TooLarge(f"The message is larger than {most_bytes} bytes.")
    try:
        document: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidInput.of(f"the message is not JSON: {error}") from error
    return document


def _problem_of(error: PilotageError) -> HttpResponse:
    if isinstance(error, NotAuthenticated):
        # Nothing that helps somebody who tries credentials out.
        answer = _problem(HTTPStatus.UNAUTHORIZED, "The caller or its token is not accepted.")
        answer["WWW-Authenticate"] = "Bearer"
        return answer
    return _problem(HTTPStatus(error.status), str(error))


def _problem(status: HTTPStatus, detail: str) -> HttpResponse:
    body = {"type": "about:blank", "title": status.phrase, "status": status, "detail": detail}
    return JsonResponse(body, status=status, content_type="application/problem+json")

"""Decorators of the pilot API's views: method, authentication by pilot or attempt, errors.

Errors are answered as problem details (RFC 9457).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any
from uuid import UUID

import structlog
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from wms.core.errors import InvalidInput, NotAuthenticated, PilotageError
from wms.jobs.output.streams import PieceMissing
from wms.pilots.protocol.attempt_refs import AttemptRef
from wms.pilots.protocol.registration import authenticate_pilot

View = Callable[..., HttpResponseBase]


def endpoint(method: str) -> Callable[[View], View]:
    """Make a view answer to one method, without a CSRF token, and with problem details on errors.

    Pilots hold no cookie, so there is no request that a browser could be tricked into sending.
    """

    def decorate(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        def wrapped(request: HttpRequest, **path: Any) -> HttpResponseBase:
            if request.method != method:
                answer = _problem(HTTPStatus.METHOD_NOT_ALLOWED, f"Use {method}.")
                answer["Allow"] = method
                return answer
            try:
                return view(request, **path)
            except PilotageError as error:
                return problem_of(error)

        return wrapped

    return decorate


def for_pilot(view: View) -> View:
    """Give the view the pilot whose credential the request carries, as its second argument."""

    @wraps(view)
    def wrapped(request: HttpRequest, **path: Any) -> HttpResponseBase:
        return view(
            request, authenticate_pilot(*credential_of(request), now=timezone.now()), **path
        )

    return wrapped


def for_attempt(view: View) -> View:
    """Decorator like `for_pilot` for one attempt, whose own token is accepted too."""

    @wraps(view)
    def wrapped(request: HttpRequest, *, job: int, attempt: int, **path: Any) -> HttpResponseBase:
        uuid, token = credential_of(request)
        pilot = authenticate_pilot(
            uuid, token, attempt=AttemptRef(job, attempt), now=timezone.now()
        )
        return view(request, pilot, job=job, attempt=attempt, **path)

    return wrapped


def problem_of(error: PilotageError) -> HttpResponse:
    """Return the answer for an error of the domain (RFC 9457)."""
    if isinstance(error, NotAuthenticated):
        # Nothing that helps somebody who tries credentials out.
        answer = _problem(HTTPStatus.UNAUTHORIZED, "The credential is not accepted.")
        answer["WWW-Authenticate"] = "Bearer"
        return answer
    facts: dict[str, object] = {}
    if isinstance(error, InvalidInput):
        facts["errors"] = [
            {"field": finding.field, "message": finding.message} for finding in error.findings
        ]
    if isinstance(error, PieceMissing):
        facts["size"] = error.size_bytes
    return _problem(HTTPStatus(error.status), str(error), **facts)


def _problem(status: HTTPStatus, detail: str, **facts: object) -> HttpResponse:
    body = {"type": "about:blank", "title": status.phrase, "status": status, "detail": detail}
    return JsonResponse({**body, **facts}, status=status, content_type="application/problem+json")


def credential_of(request: HttpRequest) -> tuple[UUID, str]:
    """The pilot's id and the token that the request carries. Raises NotAuthenticated."""
    scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
    uuid, _, token = credential.partition(":")
    if scheme.lower() != "bearer" or not token:
        raise NotAuthenticated
    try:
        known = UUID(uuid)
    except ValueError as error:
        raise NotAuthenticated from error
    # Until the request ends (`portal.middleware.request_ids`).
    structlog.contextvars.bind_contextvars(pilot=str(known))
    return known, token

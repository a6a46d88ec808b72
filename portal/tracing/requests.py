"""Middleware that makes a span of each request, named by its route.

What a caller says of its own traces is not taken over: anybody could have all of theirs recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import structlog
from django.core.signals import got_request_exception
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponseBase
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, get_current_span

from portal.metrics.measured_requests import route_of
from portal.middleware.request_ids import facts_of
from portal.tracing.tracer import note_error, trace_id_of, tracer


class TracedRequests:
    """Middleware that traces each request, and logs under the id of its trace meanwhile."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer as usual."""
        method = request.method or ""
        with tracer().start_as_current_span(
            method, Context(), SpanKind.SERVER, record_exception=False
        ) as span:
            if not span.is_recording():
                return self._get_response(request)
            with structlog.contextvars.bound_contextvars(trace_id=trace_id_of(span)):
                response = self._get_response(request)
            _describe(span, request, response)
            return response


def _describe(span: Span, request: HttpRequest, response: HttpResponseBase) -> None:
    match, route = request.resolver_match, route_of(request)
    named = facts_of(match.kwargs) if match is not None else {}
    span.update_name(f"{request.method} {route}")
    span.set_attributes(
        {
            "http.request.method": request.method or "",
            "http.response.status_code": response.status_code,
            "http.route": route,
            # Without the query, which may hold a code of a login.
            "url.path": request.path,
            "pilotage.request_id": getattr(request, "request_id", ""),
            **{f"pilotage.{fact}": value for fact, value in named.items()},
        }
    )
    if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        span.set_status(Status(StatusCode.ERROR))


@receiver(got_request_exception)
def _record(**_: Any) -> None:
    """Record what a view has raised, which others turn into an answer."""
    error = sys.exc_info()[1]
    if isinstance(error, Exception):
        note_error(get_current_span(), error)

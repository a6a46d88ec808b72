"""Middleware that counts and times requests, by the name of their route."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from portal.metrics import counts

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: What has no address here, and what a middleware answered before its address was looked up.
UNKNOWN = "unknown"


class MeasuredRequests:
    """Middleware that counts each request with its answer, refusals and failures too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer as usual."""
        started = time.monotonic()
        response = self._get_response(request)
        route = route_of(request)
        method = request.method if request.method in _METHODS else "other"
        with counts.unfailing():
            counts.REQUESTS.labels(route, method, str(response.status_code)).inc()
            counts.REQUEST_SECONDS.labels(route).observe(time.monotonic() - started)
        return response


def route_of(request: HttpRequest) -> str:
    """Name of the request's route with its namespaces, as `api:dags`: one of a few hundred."""
    match = request.resolver_match
    return UNKNOWN if match is None else match.view_name

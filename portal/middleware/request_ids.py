"""Middleware that gives each request an id, for the log, the audit trail and the response.

The log also gets the DAG, job, cluster and pilot that the address names.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponseBase
from django.utils.log import log_response

HEADER = "X-Request-ID"
#: What a proxy in front may say; anything else is replaced, since it ends up in the log.
_GIVEN = re.compile(r"[A-Za-z0-9_.-]{8,64}\Z")
#: Parameters of addresses, and the fact that each is in the log.
_FACTS = {
    "dag_id": "dag",
    "job_id": "job",
    "job": "job",
    "cluster_id": "cluster",
    "node_id": "node",
    "pilot_id": "pilot",
    "uuid": "pilot",
}


class NamedRequests:
    """Middleware that names each request; a proxy may have named it before."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer with the name in a header, and log and audit under it meanwhile."""
        given = request.headers.get(HEADER, "")
        name = given if _GIVEN.match(given) else secrets.token_hex(8)
        request.request_id = name  # type: ignore[attr-defined]
        with structlog.contextvars.bound_contextvars(request_id=name):
            try:
                response = self._get_response(request)
                if response.status_code >= HTTPStatus.BAD_REQUEST:
                    _log(request, response)
            finally:
                # The next request of this thread is about something else.
                structlog.contextvars.unbind_contextvars(*_FACTS.values())
        response.headers[HEADER] = name
        return response

    def process_view(
        self, request: HttpRequest, view: object, positional: object, named: Mapping[str, Any]
    ) -> None:
        """Log under what the address names as well; it ends with the request."""
        structlog.contextvars.bind_contextvars(**facts_of(named))


def facts_of(named: Mapping[str, Any]) -> dict[str, str]:
    """DAG, job, cluster, node and pilot among the parameters of an address."""
    return {fact: str(named[name]) for name, fact in _FACTS.items() if name in named}


def _log(request: HttpRequest, response: HttpResponseBase) -> None:
    """Log as Django does, which does so once only: it would when all ids are forgotten."""
    log_response("%s: %s", response.reason_phrase, request.path, response=response, request=request)

"""Exception handler of the REST API: errors as problem details (RFC 9457) with findings.

It rolls back the transaction of the request. Also warnings and statistics of a checked DAG as
members of an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFilesSent,
)
from django.http import Http404
from django.http.multipartparser import MultiPartParserError
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from portal.api.throttling import RateExceeded
from portal.shared.archives import ArchiveTooLarge
from portal.shared.problem_details import CONTENT_TYPE, problem_body
from wms.core.errors import (
    Finding,
    InvalidInput,
    NotAuthenticated,
    PilotageError,
    QuotaExceeded,
    ScopeMissing,
)
from wms.dags.submission.checking import CheckedDag, FaultyDag
from wms.jobs.uploads.operations import OffsetMismatch, WrongHash
from wms.pilots.testing.services import OpenTest

#: Levels of a DAG whose widths an answer has at most.
_MAX_WIDTHS = 1000
_ADVICE: Mapping[type[exceptions.APIException], str] = {
    exceptions.NotAuthenticated: " Send a token: `Authorization: Bearer <token>`.",
    exceptions.UnsupportedMediaType: " Send `Content-Type: application/json`; files as form data.",
}

#: Members of problems that tell facts of an error, each with the name of the error's field.
_FACTS: Mapping[type[PilotageError], Mapping[str, str]] = {
    QuotaExceeded: {name: name for name in ("quota", "whose", "limit", "used", "asked")},
    OffsetMismatch: {"expected_offset": "expected", "provided_offset": "provided"},
    ArchiveTooLarge: {"archive": "archive", "member": "member"},
    WrongHash: {"expected_sha256": "expected", "found_sha256": "found"},
}


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Return the answer for an error that the caller can understand; None for a fault of ours."""
    if isinstance(error, TooManyFilesSent | RequestDataTooBig):
        answer = _problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request has too many parts.")
    elif isinstance(error, SuspiciousOperation | MultiPartParserError):
        answer = _problem(HTTPStatus.BAD_REQUEST, f"The request cannot be read: {error}")
    elif isinstance(error, RecursionError):
        answer = _problem(HTTPStatus.BAD_REQUEST, "The request is nested too deeply.")
    elif isinstance(error, PilotageError):
        answer = _of_domain(error)
    elif isinstance(error, Http404):
        answer = _problem(HTTPStatus.NOT_FOUND, "There is no such object, or you may not see it.")
    elif isinstance(error, PermissionDenied):
        answer = _problem(HTTPStatus.FORBIDDEN, str(error) or "You may not do this.")
    elif isinstance(error, exceptions.APIException):
        answer = _of_framework(error)
    else:
        return None
    set_rollback()
    return answer


def _of_domain(error: PilotageError) -> Response:
    findings = error.findings if isinstance(error, InvalidInput) else ()
    answer = _problem(HTTPStatus(error.status), str(error), findings, error.code)
    if error.retry_after_s is not None:
        answer["Retry-After"] = str(error.retry_after_s)
    facts = _FACTS.get(type(error), {})
    answer.data |= {member: getattr(error, name) for member, name in facts.items()}
    if isinstance(error, ScopeMissing):
        answer.data["scopes"] = list(error.scopes)
    if isinstance(error, RateExceeded):
        # A member of the draft on RateLimit fields.
        answer.data["violated-policies"] = list(error.policies)
    if isinstance(error, OpenTest):
        answer.data["pilot"] = str(error.pilot)
    if isinstance(error, FaultyDag):
        answer.data |= warnings_and_statistics(error.checked)
    if isinstance(error, NotAuthenticated):
        answer["WWW-Authenticate"] = "Bearer"
    return answer


def _of_framework(error: exceptions.APIException) -> Response:
    status = HTTPStatus(error.status_code)
    if isinstance(error, exceptions.ValidationError):
        findings = list(_findings(error.detail))
        answer = _problem(status, "; ".join(map(str, findings)), findings, InvalidInput.code)
    else:
        answer = _problem(status, f"{error.detail}{_ADVICE.get(type(error), '')}")
    challenge = getattr(error, "auth_header", None)
    if challenge:
        answer["WWW-Authenticate"] = challenge
    wait_s = getattr(error, "wait", None)
    if wait_s:
        answer["Retry-After"] = str(int(wait_s))
    return answer


def _findings(detail: Any, field: str = "") -> Iterable[Finding]:
    """The faults of a serializer or filter, one for each message, with the dotted field name."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            own = "" if name == "non_field_errors" else str(name)
            yield from _findings(inner, ".".join(filter(None, (field, own))))
    elif isinstance(detail, list | tuple):
        for inner in detail:
            yield from _findings(inner, field)
    else:
        yield Finding(str(detail), field=field)


def _problem(
    status: HTTPStatus,
    detail: str,
    findings: Sequence[Finding] = (),
    code: str = "",
) -> Response:
    body = problem_body(status, detail, findings, code)
    return Response(body, status=status.value, content_type=CONTENT_TYPE)


def warnings_and_statistics(checked: CheckedDag) -> dict[str, Any]:
    """Members of an answer about a DAG that was checked: its warnings and statistics."""
    statistics = checked.dag.statistics
    return {
        "warnings": [asdict(warning) for warning in checked.warnings],
        "statistics": {**asdict(statistics), "widths": statistics.widths[:_MAX_WIDTHS]},
    }

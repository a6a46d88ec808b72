"""Problem details (RFC 9457) as JSON, also for requests that no endpoint takes.

Their types are addresses of pages that explain them (`portal.shared.problem_types`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from django.http import JsonResponse

from portal.shared.problem_types import code_of_status, type_address
from wms.core.audit import current_request_id
from wms.core.errors import Finding, InvalidInput

CONTENT_TYPE = "application/problem+json"


def problem_without_view(
    status: HTTPStatus, detail: str, findings: Sequence[Finding] = (), *, code: str = ""
) -> JsonResponse:
    """Problem details of a request that no endpoint takes."""
    body = problem_body(status, detail, findings, code or (InvalidInput.code if findings else ""))
    return JsonResponse(body, status=status.value, content_type=CONTENT_TYPE)


def problem_body(
    status: HTTPStatus,
    detail: str,
    findings: Sequence[Finding] = (),
    code: str = "",
) -> dict[str, Any]:
    """JSON body of a problem with this status; `code` is that of its type, if there is one."""
    return {
        "type": type_address(code or code_of_status(status)),
        "title": status.phrase,
        "status": status.value,
        "detail": detail,
        "findings": [asdict(finding) for finding in findings],
        "request_id": current_request_id(),
    }

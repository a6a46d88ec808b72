"""Pilot API before the first claim: agent files by hash, reports of unfit nodes, node checks."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone

from portal.pilot_api.bodies import Fields, read_body
from portal.pilot_api.endpoint import endpoint, for_pilot
from wms.core.errors import NotAuthenticated
from wms.pilots.models import Pilot
from wms.pilots.program.checks import CheckResult, record_checks, report_unfit
from wms.pilots.program.manifest import file_content, manifest_content
from wms.pilots.program.published import Said

_REASON_LENGTH = 1000


@endpoint("GET")
def manifest(request: HttpRequest, *, sha256: str) -> HttpResponse:
    """Manifest of the files that a pilot runs; who fetches it knows its hash beforehand."""
    return _immutable(manifest_content, sha256, "application/json")


@endpoint("GET")
def file(request: HttpRequest, *, sha256: str) -> HttpResponse:
    """One file of a manifest."""
    return _immutable(file_content, sha256, "application/octet-stream")


def _immutable(content_of: Callable[[str], bytes], sha256: str, kind: str) -> HttpResponse:
    """A content that never changes under its name: caches on the way may keep it for ever."""
    answer = HttpResponse(content_of(sha256), content_type=kind)
    answer["Cache-Control"] = "public, max-age=31536000, immutable"
    answer["ETag"] = f'"{sha256}"'
    return answer


@endpoint("POST")
def unfit(request: HttpRequest) -> HttpResponse:
    """Report of a pilot that stopped before it executed anything, with the reason."""
    body = read_body(request)
    secret = body.text("secret", max_length=256)
    reason = body.text("reason", pattern=".+")[:_REASON_LENGTH]
    try:
        uuid = UUID(body.text("pilot", max_length=36))
    except ValueError as error:
        raise NotAuthenticated from error
    report_unfit(uuid, secret=secret, reason=reason, now=timezone.now())
    return JsonResponse({})


@endpoint("POST")
@for_pilot
def checks(request: HttpRequest, pilot: Pilot) -> HttpResponse:
    """Report of the results of node checks."""
    results = [_read_result(each) for each in read_body(request).objects("checks")]
    record_checks(pilot, results, now=timezone.now())
    return JsonResponse({"accepted": True})


def _read_result(fields: Fields) -> CheckResult:
    return CheckResult(
        key=fields.text("key", max_length=64, pattern=".+"),
        name=fields.text("name", max_length=64, pattern=".+"),
        is_ok=fields.flag("is_ok"),
        kind=fields.text("kind", max_length=32),
        reason=fields.text("reason", max_length=_REASON_LENGTH),
        metrics=fields.object("metrics").metrics(),
        seconds=fields.number("seconds"),
        said=_read_said(fields),
    )


def _read_said(fields: Fields) -> Said:
    """Publication of the check, in whatever form: it is judged where it is stored."""
    return Said(
        attributes=fields.anything("attributes"),
        variables=fields.anything("variables"),
        skipped=fields.text("skipped", max_length=_REASON_LENGTH) if fields.has("skipped") else "",
    )

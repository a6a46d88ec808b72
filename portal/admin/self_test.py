"""Admin page of the self-test, which checks the installation from the web server's process."""

from __future__ import annotations

import os
import pwd
import socket
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse

from portal.admin.roles import role_of
from portal.selftest.findings import Finding, Level, troubles
from portal.selftest.registry import run_all
from portal.web.shared.pages import refusal
from wms.core.errors import NotPermitted
from wms.core.models import Role


def self_test(site: AdminSite, request: HttpRequest) -> HttpResponse:
    """Make all checks now and show what they found."""
    if not role_of(request, Role.ADMIN):
        return refusal(request, NotPermitted(f"The self-test needs the role {Role.ADMIN.label}."))
    if request.method not in {"GET", "HEAD"}:
        return HttpResponseNotAllowed(["GET", "HEAD"])
    findings = run_all()
    context: dict[str, Any] = {
        **site.each_context(request),
        "title": "Self-test",
        "findings": [*troubles(findings), *_well(findings)],
        "host": socket.gethostname(),
        "account": _account(),
    }
    return TemplateResponse(request, "admin/self_test.html", context)


def _well(findings: list[Finding]) -> list[Finding]:
    return [each for each in findings if each.level == Level.OK]


def _account() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())

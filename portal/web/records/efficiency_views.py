"""Efficiency page: used and wasted core-seconds by site, user and day."""

from __future__ import annotations

from datetime import UTC

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.shared.efficiency import read_question
from portal.web.records.waste import shown_lines
from portal.web.shared.pages import page
from wms.accounting.core_seconds import UseBy

_DAYS_OFFERED = (1, 7, 30, 365)


@require_safe
@page
def efficiency(request: HttpRequest) -> HttpResponse:
    """Core-seconds of some days by site, user or day, most wasted first."""
    question = read_question(request.GET.dict())
    now = timezone.now()
    lines = shown_lines(question.answer(request.user, today=now.astimezone(UTC).date()))
    context = {
        "question": question,
        "lines": lines,
        "choices": list(UseBy),
        "days_offered": _DAYS_OFFERED,
        "now": now,
    }
    return render(request, "web/efficiency.html", context)

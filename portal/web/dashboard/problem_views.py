"""Pages of the types of problems that the API answers with; anybody may read them."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.shared.problem_types import PROBLEM_TYPES


@require_safe
def problem_types(request: HttpRequest) -> HttpResponse:
    """All types, by status."""
    return render(request, "web/problems.html", {"types": PROBLEM_TYPES.values()})


@require_safe
def problem_type(request: HttpRequest, code: str) -> HttpResponse:
    """One type: what it means, and what helps."""
    if code not in PROBLEM_TYPES:
        raise Http404
    return render(request, "web/problem.html", {"type": PROBLEM_TYPES[code]})

"""The dashboard."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.web.board import board_of
from portal.web.charts import PANELS
from portal.web.pages import page, render_page


@require_safe
@page
def dashboard(request: HttpRequest) -> HttpResponse:
    """What needs attention first, then what is in which state, and the last day."""
    board = board_of(request.user, now=timezone.now())
    return render_page(request, "dashboard", {"board": board, "panel": PANELS["jobs"]})

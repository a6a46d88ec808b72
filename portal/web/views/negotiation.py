"""What the negotiator did."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from portal.web.charts import PANELS
from portal.web.negotiations import PHASES, cycle_lines
from portal.web.pages import page, render_page
from portal.web.paging import page_of
from wms.dags.cycles import busy_cycles, visible_cycles


@require_safe
@page
def negotiation(request: HttpRequest) -> HttpResponse:
    """The last negotiations, latest first; `?busy=true` leaves out those without any request."""
    is_busy = request.GET.get("busy") == "true"
    cycles = busy_cycles(request.user) if is_busy else visible_cycles(request.user)
    chosen = page_of(cycles, request.GET)
    context = {
        "is_busy": is_busy,
        "page": chosen,
        "lines": cycle_lines(chosen.rows),
        "phases": PHASES,
        "panels": [PANELS["negotiation"], PANELS["matches"], PANELS["duration"]],
    }
    return render_page(request, "negotiation", context)

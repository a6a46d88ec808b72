"""Pages of negotiation cycles: list and detail."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.web.explain.answers import cut
from portal.web.history.charts import PANELS
from portal.web.lists.paging import page_of
from portal.web.matching.cycle_bars import PHASES, cycle_lines
from portal.web.shared.pages import page, render_page
from wms.dags.negotiation.records import (
    busy_cycles,
    find_cycle,
    left_over_of,
    matches_of,
    visible_cycles,
)

#: Most matches of one negotiation that are shown.
_MATCHES_SHOWN = 100


@require_safe
@page
def negotiation(request: HttpRequest) -> HttpResponse:
    """Latest negotiation cycles; `?busy=true` leaves out those without requests."""
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


@require_safe
@page
def cycle_page(request: HttpRequest, cycle_id: int) -> HttpResponse:
    """One negotiation cycle: its matches, and why other DAGs were left over."""
    cycle = find_cycle(request.user, cycle_id)
    matches = matches_of(request.user, cycle)[: 2 * _MATCHES_SHOWN]
    context = {
        "cycle": cycle,
        "line": cycle_lines([cycle])[0],
        "phases": PHASES,
        "matches": cut(matches, _MATCHES_SHOWN),
        "left_over": left_over_of(request.user, cycle),
    }
    return render(request, "web/cycle.html", context)

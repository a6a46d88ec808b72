"""The list of pilots and a pilot's page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.filters import PilotFilter
from portal.slots import slot_of
from portal.web.listing import listing_of
from portal.web.pages import page, render_page
from wms.core.errors import NotFound
from wms.core.models import User
from wms.jobs.selectors import attempts_of_pilot
from wms.pilots.models import Pilot
from wms.pilots.selectors import detailed_pilots, events_of_pilot, listed_pilots, log_tail
from wms.pilots.states import PilotState

_EVENTS_SHOWN = 50
_ATTEMPTS_SHOWN = 100
_TAIL_BYTES = 32 * 1024


@require_safe
@page
def pilot_list(request: HttpRequest) -> HttpResponse:
    """Pilots by state, site and queue, latest first."""
    listing = listing_of(request, PilotFilter, listed_pilots(request.user), PilotState.values)
    return render_page(request, "pilots", {"listing": listing})


@require_safe
@page
def pilot_page(request: HttpRequest, pilot_id: int) -> HttpResponse:
    """What a pilot reported of its node, what of its slot is free, what it ran, and its events."""
    pilot = _find(request.user, pilot_id)
    attempts = list(attempts_of_pilot(pilot.pk)[: _ATTEMPTS_SHOWN + 1])
    events = list(events_of_pilot(pilot)[: _EVENTS_SHOWN + 1])
    context = {
        "pilot": pilot,
        "slot": slot_of(pilot),
        "attempts": attempts[:_ATTEMPTS_SHOWN],
        "attempts_cut": len(attempts) > _ATTEMPTS_SHOWN,
        "events": events[:_EVENTS_SHOWN],
        "events_cut": len(events) > _EVENTS_SHOWN,
    }
    return render_page(request, "pilot", context)


@require_safe
@page
def pilot_log(request: HttpRequest, pilot_id: int) -> HttpResponse:
    """The end of the log. The batch system is asked for it, so it is a part of its own."""
    tail = log_tail(_find(request.user, pilot_id), limit_bytes=_TAIL_BYTES)
    template = "web/pilot_log_part.html" if request.htmx else "web/pilot_log.html"
    return render(request, template, {"tail": tail, "pilot_id": pilot_id})


def _find(user: User, pilot_id: int) -> Pilot:
    pilot = detailed_pilots(user).filter(pk=pilot_id).first()
    if pilot is None:
        raise NotFound(f"There is no pilot {pilot_id}.")
    return pilot

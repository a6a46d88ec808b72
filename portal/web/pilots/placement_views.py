"""Views of the page of a placement request (file transfer), and of its removal."""

from __future__ import annotations

from operator import attrgetter

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from portal.web.shared.action_forms import ActionForm, Refused, offers_of
from portal.web.shared.pages import page, render_page
from portal.web.shared.stale_forms import while_seen
from wms.actions.actions import Action
from wms.actions.sites_and_pilots import PLACEMENTS
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted, PilotageError
from wms.dags.reading.node_selectors import nodes_of_requests
from wms.placement.models import PlacementRequest
from wms.placement.selectors import find_request
from wms.placement.storages.waiting import why_it_waits
from wms.placement.ways.telling import told_choice

_EVENTS_SHOWN = 100


@require_safe
@page
def placement_page(request: HttpRequest, request_id: int) -> HttpResponse:
    """Page of one placement request."""
    return _page(request, find_request(request.user, request_id))


def _page(
    request: HttpRequest, found: PlacementRequest, refused: Refused | None = None
) -> HttpResponse:
    events = list(found.events.order_by("-pk")[: _EVENTS_SHOWN + 1])
    error = refused.error if refused else None
    context = {
        "placement": found,
        "node": nodes_of_requests([found.pk]).get(found.pk),
        "waits_because": why_it_waits(found, timezone.now()),
        "attempts": [
            (each, told_choice(each.choice)) for each in found.attempts.order_by("-number")
        ],
        "offers": offers_of(
            PLACEMENTS.possible_on_page(request.user, found),
            found.state,
            lambda name: reverse(f"web:{name}-placement", args=[found.pk]),
            refused=refused,
        ),
        "error": error,
        "events": events[:_EVENTS_SHOWN],
        "events_cut": len(events) > _EVENTS_SHOWN,
    }
    return render_page(request, "placement", context, status=error.status if error else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def steer(request: HttpRequest, request_id: int, *, action: Action) -> HttpResponse:
    """Remove a placement request; a GET after a new login is redirected to the form."""
    found = find_request(request.user, request_id)
    if request.method != "POST":
        return redirect("web:placement", request_id=found.pk)
    form = ActionForm(action, request.POST)
    try:
        order = form.order(Actor.person(request.user))
        rows, state = PlacementRequest.objects.filter(pk=found.pk), attrgetter("state")
        with while_seen(request, rows, state, what=f"request {found.pk}") as now:
            applied = action.act(found.pk, order)
        if not applied.changed:
            raise Conflict(f"Nothing was done: the request is {now.state}.")
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return _page(request, find_request(request.user, request_id), Refused(form, error))
    messages.success(request, f"Placement request {found.pk} {action.done}.")
    return redirect("web:placement", request_id=found.pk)

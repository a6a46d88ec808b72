"""Views of allocations of space: all that live, one with its use, and its release."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from portal.web.shared.action_forms import ActionForm, Refused, offers_of
from portal.web.shared.pages import page, render_page
from wms.actions.actions import Action
from wms.actions.allocations import ALLOCATIONS
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted, PilotageError
from wms.placement.models import PlacementAllocation
from wms.placement.space import find_allocation, listed_allocations

_SHOWN = 200


@require_safe
@page
def allocation_list(request: HttpRequest) -> HttpResponse:
    """Allocations that live, those that end first before others."""
    rows = list(listed_allocations(request.user, timezone.now())[: _SHOWN + 1])
    context = {"allocations": rows[:_SHOWN], "is_cut": len(rows) > _SHOWN}
    return render_page(request, "allocations", context)


@require_safe
@page
def allocation_page(request: HttpRequest, allocation_id: int) -> HttpResponse:
    """One allocation, with the form that releases it."""
    return _page(request, find_allocation(request.user, allocation_id))


def _page(
    request: HttpRequest, found: PlacementAllocation, refused: Refused | None = None
) -> HttpResponse:
    error = refused.error if refused else None
    context = {
        "allocation": found,
        "is_over": found.released_at is not None or found.expires_at <= timezone.now(),
        "offers": offers_of(
            ALLOCATIONS.possible_on_page(request.user, found),
            "",
            lambda name: reverse(f"web:{name}-allocation", args=[found.pk]),
            refused=refused,
        ),
        "error": error,
    }
    return render_page(request, "allocation", context, status=error.status if error else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def steer(request: HttpRequest, allocation_id: int, *, action: Action) -> HttpResponse:
    """Release an allocation; a GET after a new login is redirected to the form."""
    found = find_allocation(request.user, allocation_id)
    if request.method != "POST":
        return redirect("web:allocation", allocation_id=found.pk)
    form = ActionForm(action, request.POST)
    try:
        applied = action.act(found.pk, form.order(Actor.person(request.user)))
        if not applied.changed:
            raise Conflict("Nothing was done: the allocation is over.")
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        now = find_allocation(request.user, allocation_id)
        return _page(request, now, Refused(form, error))
    messages.success(request, f"Allocation {found.name} {action.done}.")
    return redirect("web:allocation", allocation_id=found.pk)

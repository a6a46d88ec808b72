"""Pilot page, and the view that steers a pilot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from portal.shared.ranged_downloads import send_in_pieces
from portal.shared.slots import slot_of
from portal.web.shared.forms import ReasonForm
from portal.web.shared.pages import page, render_page
from portal.web.shared.stale_forms import while_seen
from wms.core.actors import Actor
from wms.core.errors import NotFound, NotPermitted, PilotageError
from wms.core.models import User
from wms.jobs.selectors import attempts_of_pilot
from wms.pilots.models import Pilot
from wms.pilots.policy import may_steer
from wms.pilots.program.checks import checks_of_pilot
from wms.pilots.protocol.logs import log_text
from wms.pilots.selectors import (
    events_of_pilot,
    find_pilot_by_number,
    find_stored_log,
)
from wms.pilots.services import drain_pilot, remove_pilot
from wms.pilots.states import ALIVE

_EVENTS_SHOWN = 50
_ATTEMPTS_SHOWN = 100
_CHECKS_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Steering:
    """A way to steer a pilot: its form, and with an error why it was refused."""

    action: str
    label: str
    effect: str
    done: str
    service: Callable[..., Pilot]
    button: str = "btn-main"
    address: str = ""
    error: PilotageError | None = None


DRAIN = Steering(
    action="drain",
    label="Drain",
    effect="The pilot takes no more jobs and ends after those at hand.",
    done="takes no more jobs",
    service=drain_pilot,
)
REMOVE = Steering(
    action="remove",
    label="Remove",
    effect="The pilot ends at once, and the batch system is told to cancel it. The jobs at hand "
    "are stopped and run again elsewhere, which costs them none of their attempts.",
    done="is removed",
    service=remove_pilot,
    button="btn-danger-plain",
)


@require_safe
@page
def pilot_page(request: HttpRequest, pilot_id: int) -> HttpResponse:
    """What a pilot found on its node, what of its slot is free, what it ran, and its events."""
    return _show_pilot(request, find_pilot_by_number(request.user, pilot_id))


def _show_pilot(
    request: HttpRequest, pilot: Pilot, *, refused: Steering | None = None
) -> HttpResponse:
    """The pilot's page; the form of what was refused is open and shows why."""
    attempts = list(attempts_of_pilot(pilot.pk)[: _ATTEMPTS_SHOWN + 1])
    events = list(events_of_pilot(pilot)[: _EVENTS_SHOWN + 1])
    error = refused.error if refused else None
    context = {
        "pilot": pilot,
        "slot": slot_of(pilot),
        "checks": list(checks_of_pilot(pilot)[:_CHECKS_SHOWN]),
        "attempts": attempts[:_ATTEMPTS_SHOWN],
        "attempts_cut": len(attempts) > _ATTEMPTS_SHOWN,
        "events": events[:_EVENTS_SHOWN],
        "events_cut": len(events) > _EVENTS_SHOWN,
        "waste": waste_of(pilot),
        "steering": _offered(request.user, pilot, refused),
        "form": ReasonForm(request.POST or None),
    }
    return render_page(request, "pilot", context, status=error.status if error else 200)


def _offered(user: User, pilot: Pilot, refused: Steering | None) -> list[Steering]:
    """What the user may do with the pilot now, and what was refused just now."""
    is_steered = may_steer(user) and pilot.state in ALIVE
    offered = {DRAIN.action: is_steered and not pilot.drain_reason, REMOVE.action: is_steered}
    found = []
    for each in (DRAIN, REMOVE):
        is_refused = refused is not None and refused.action == each.action
        if is_refused or offered[each.action]:
            address = reverse(f"web:{each.action}-pilot", kwargs={"pilot_id": pilot.pk})
            error = refused.error if is_refused and refused else None
            found.append(replace(each, address=address, error=error))
    return found


@dataclass(frozen=True, slots=True)
class Waste:
    """A pilot's accounts, in core-seconds, and its waste in per cent."""

    cores: int
    life_s: float
    usable_s: float
    used_s: float
    good_s: float
    percent: dict[str, float]


def waste_of(pilot: Pilot) -> Waste | None:
    """The accounts of a pilot that has ended; None before they are made."""
    if not pilot.accounts:
        return None
    seconds: dict[str, float] = pilot.accounts["core_seconds"]
    permille: dict[str, int] = pilot.accounts["permille"]
    return Waste(
        cores=pilot.accounts["cores"],
        life_s=seconds["pilot"],
        usable_s=seconds["usable"],
        used_s=seconds["used"],
        good_s=seconds["good"],
        percent={name: value / 10 for name, value in permille.items()},
    )


@require_http_methods(["GET", "HEAD", "POST"])
@page
def steer_pilot(request: HttpRequest, pilot_id: int, *, steering: Steering) -> HttpResponse:
    """Drain or remove a pilot; a refusal is shown at the form.

    Whoever had to log in again comes here by GET, and is led to the pilot.
    """
    pilot = find_pilot_by_number(request.user, pilot_id)
    if request.method != "POST":
        return redirect("web:pilot", pilot_id=pilot_id)
    reason = ReasonForm(request.POST).options()["reason"]
    try:
        rows, state = Pilot.objects.filter(pk=pilot_id), attrgetter("state")
        with while_seen(request, rows, state, what=f"pilot {pilot_id}"):
            steering.service(pilot.uuid, actor=Actor.person(request.user), reason=reason)
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        found = find_pilot_by_number(request.user, pilot_id)
        return _show_pilot(request, found, refused=replace(steering, error=error))
    messages.success(request, f"Pilot {pilot_id} {steering.done}.")
    return redirect("web:pilot", pilot_id=pilot_id)


@require_safe
@page
def pilot_log_file(request: HttpRequest, pilot_id: int) -> HttpResponseBase:
    """All that the pilot has sent of its log, as a download."""
    stored = find_stored_log(find_pilot_by_number(request.user, pilot_id))
    name = f"pilot-{pilot_id}.log.txt"
    return send_in_pieces(request, log_text(stored), name=name)

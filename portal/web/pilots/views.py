"""Views of the pilot page, its actions drain and remove, and the download of its log.

Also the pilot's core-seconds, used and wasted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from matching.task_queues.published import ad_values
from matching.task_queues.resources import TIME_SOURCE
from portal.shared.ranged_downloads import send_in_pieces
from portal.shared.slots import slot_of
from portal.web.shared.action_forms import ActionForm, Offer, Refused, offers_of
from portal.web.shared.pages import page, render_page
from portal.web.shared.stale_forms import while_seen
from wms.actions.actions import Action
from wms.actions.sites_and_pilots import PILOTS
from wms.core.actors import Actor
from wms.core.errors import NotFound, NotPermitted, PilotageError
from wms.jobs.selectors import attempts_of_pilot
from wms.pilots.models import Pilot
from wms.pilots.program.checks import checks_of_pilot
from wms.pilots.protocol.logs import log_text
from wms.pilots.selectors import (
    events_of_pilot,
    find_pilot_by_number,
    find_stored_log,
)
from wms.pilots.testing.selectors import report_of
from wms.sites.cpu_power import BENCHMARK, POWER, power_of

_EVENTS_SHOWN = 50
_ATTEMPTS_SHOWN = 100
_CHECKS_SHOWN = 100


@require_safe
@page
def pilot_page(request: HttpRequest, pilot_id: int) -> HttpResponse:
    """Page of a pilot: node, slot, jobs and events; the report, if it is a test pilot."""
    return _show_pilot(request, find_pilot_by_number(request.user, pilot_id))


def _show_pilot(
    request: HttpRequest, pilot: Pilot, *, refused: Refused | None = None
) -> HttpResponse:
    """Pilot page; the form of a refused action is open and shows the reason."""
    attempts = list(attempts_of_pilot(request.user, pilot.pk)[: _ATTEMPTS_SHOWN + 1])
    events = list(events_of_pilot(pilot)[: _EVENTS_SHOWN + 1])
    error = refused.error if refused else None
    checks = list(checks_of_pilot(pilot)[:_CHECKS_SHOWN])
    context = {
        "pilot": pilot,
        "report": report_of(pilot, checks, timezone.now()) if pilot.test else None,
        "slot": slot_of(pilot),
        "time_left": time_left_of(pilot),
        "cpu_power": (power := power_of(pilot.queue, pilot.published)),
        "is_power_measured": pilot.published.get(BENCHMARK, {}).get(POWER) == power,
        "checks": checks,
        "published": ad_values(pilot.published),
        "variables": [
            (check, *each) for check, given in pilot.variables.items() for each in given.items()
        ],
        "attempts": attempts[:_ATTEMPTS_SHOWN],
        "attempts_cut": len(attempts) > _ATTEMPTS_SHOWN,
        "events": events[:_EVENTS_SHOWN],
        "events_cut": len(events) > _EVENTS_SHOWN,
        "waste": waste_of(pilot),
        "offers": _offers(request, pilot, refused),
    }
    return render_page(request, "pilot", context, status=error.status if error else 200)


def _offers(request: HttpRequest, pilot: Pilot, refused: Refused | None) -> list[Offer]:
    """Forms of the actions that the user may take now, and the refused one."""
    possible = PILOTS.possible_on_page(request.user, pilot)
    return offers_of(
        [
            action
            for action in PILOTS.actions.values()
            if action in possible or (refused and refused.form.action is action)
        ],
        pilot.state,
        lambda name: reverse(f"web:{name}-pilot", kwargs={"pilot_id": pilot.pk}),
        refused=refused,
    )


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """End of a pilot as its batch system told it; without a moment where that is no limit."""

    source: str
    until: datetime | None


def time_left_of(pilot: Pilot) -> TimeLeft | None:
    """Time that the pilot's batch system told; None where it told nothing."""
    source = pilot.node.get(TIME_SOURCE)
    if not source:
        return None
    ends_at = pilot.node.get("ends_at")
    return TimeLeft(source, None if ends_at is None else datetime.fromtimestamp(ends_at, UTC))


@dataclass(frozen=True, slots=True)
class Waste:
    """Accounting of a pilot in core-seconds, and its waste in per cent."""

    cores: int
    life_s: float
    usable_s: float
    used_s: float
    good_s: float
    percent: dict[str, float]


def waste_of(pilot: Pilot) -> Waste | None:
    """Accounting of a pilot that has ended; None before it is computed."""
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
def steer_pilot(request: HttpRequest, pilot_id: int, *, action: Action) -> HttpResponse:
    """Drain or remove a pilot; a refusal is shown at the form.

    Whoever had to log in again comes here by GET, and is led to the pilot.
    """
    pilot = find_pilot_by_number(request.user, pilot_id)
    if request.method != "POST":
        return redirect("web:pilot", pilot_id=pilot_id)
    form = ActionForm(action, request.POST)
    try:
        order = form.order(Actor.person(request.user))
        rows, state = Pilot.objects.filter(pk=pilot_id), attrgetter("state")
        with while_seen(request, rows, state, what=f"pilot {pilot_id}"):
            action.act(pilot.uuid, order)
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        found = find_pilot_by_number(request.user, pilot_id)
        return _show_pilot(request, found, refused=Refused(form, error))
    messages.success(request, f"Pilot {pilot_id} {action.done}.")
    return redirect("web:pilot", pilot_id=pilot_id)


@require_safe
@page
def pilot_log_file(request: HttpRequest, pilot_id: int) -> HttpResponseBase:
    """Full log that the pilot has sent, as a download."""
    stored = find_stored_log(find_pilot_by_number(request.user, pilot_id))
    name = f"pilot-{pilot_id}.log.txt"
    return send_in_pieces(request, log_text(stored), name=name)

"""Pages of schedules: their list, one with its times, its change, and the actions on it."""

from __future__ import annotations

from functools import partial
from operator import attrgetter

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from portal.web.lists.listing import show_list
from portal.web.schedules.change_form import ChangeForm
from portal.web.shared.action_forms import ActionForm, Refused, offers_of
from portal.web.shared.pages import page, render_page
from portal.web.shared.stale_forms import seen_by, while_seen, while_version
from wms.actions.arguments import Order
from wms.actions.schedules import SCHEDULES
from wms.actions.selectors import possible_actions
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted, PilotageError
from wms.schedules.changes import terms_of
from wms.schedules.models import Schedule
from wms.schedules.policy import may_steer, require_steering
from wms.schedules.selectors import (
    events_of,
    files_of,
    find_schedule,
    runs_of,
)
from wms.schedules.states import TERMINAL

#: Times of a schedule that its page shows.
_SHOWN = 100
_CHANGE = SCHEDULES.actions["change"]


@require_safe
@page
def schedule_list(request: HttpRequest) -> HttpResponse:
    """Schedules, latest first."""
    return show_list(request, "schedules")


@require_safe
@page
def schedule_page(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """One schedule with its times."""
    return _page(request, schedule_id)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def steer(request: HttpRequest, schedule_id: int, event: str) -> HttpResponse:
    """Carry out an action on a schedule; a refusal is shown at the form that was sent.

    Whoever had to log in again comes here by GET, and is led to the schedule.
    """
    action = SCHEDULES.find_on_page(event)
    if action is None:
        raise Http404
    schedule = find_schedule(request.user, schedule_id)
    if request.method != "POST":
        return redirect("web:schedule", schedule_id=schedule.pk)
    form = ActionForm(action, request.POST)
    try:
        order = form.order(Actor.person(request.user))
        rows, state = Schedule.objects.filter(pk=schedule.pk), attrgetter("state")
        with while_seen(request, rows, state, what=f"schedule {schedule.pk}") as now:
            if not action.act(schedule.pk, order).changed:
                raise Conflict(f"Nothing was done: the schedule is {now.state}.")
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return _page(request, schedule_id, refused=Refused(form, error))
    messages.success(request, f"Schedule {schedule.pk} {action.done}.")
    return redirect("web:schedule", schedule_id=schedule.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def change(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Form of a schedule's terms; a refusal is shown in it."""
    schedule = find_schedule(request.user, schedule_id)
    require_steering(Actor.person(request.user), [schedule])
    form, error = _change_form(request, schedule), None
    if request.method == "POST":
        rows, now = Schedule.objects.filter(pk=schedule.pk), partial(_version, request)
        try:
            with while_version(request, rows, now, what="this schedule") as locked:
                changes = _change_form(request, locked).changes()
                order = Order(Actor.person(request.user), changes.pop("reason"), changes)
                _CHANGE.act(schedule.pk, order)
        except (NotPermitted, NotFound):
            raise
        except PilotageError as caught:
            error, form = caught, _change_form(request, find_schedule(request.user, schedule_id))
            if seen_by(request) not in ("", form.version):
                # What was typed into a stale form gives way to what is there now.
                form = ChangeForm(now=form.now)
        else:
            messages.success(request, f"Schedule {schedule.pk} is changed.")
            return redirect("web:schedule", schedule_id=schedule.pk)
    context = {
        "schedule": schedule,
        "form": form,
        "has_ended": schedule.state in TERMINAL,
        "error": error,
    }
    return render_page(request, "schedule_change", context, status=error.status if error else 200)


def _change_form(request: HttpRequest, schedule: Schedule) -> ChangeForm:
    return ChangeForm(request.POST if request.method == "POST" else None, now=terms_of(schedule))


def _version(request: HttpRequest, schedule: Schedule) -> str:
    return _change_form(request, schedule).version


def _page(
    request: HttpRequest, schedule_id: int, *, refused: Refused | None = None
) -> HttpResponse:
    schedule = find_schedule(request.user, schedule_id)
    # Whether a DAG of it goes on is not told by its row.
    possible = [
        action for action in possible_actions(request.user, SCHEDULES, schedule.pk) if action.page
    ]

    def address(name: str) -> str:
        return reverse("web:steer-schedule", args=[schedule.pk, name])

    runs = list(runs_of(schedule)[: _SHOWN + 1])
    context = {
        "schedule": schedule,
        "may_change": may_steer(request.user, schedule) and schedule.state not in TERMINAL,
        "offers": offers_of(possible, schedule.state, address, refused=refused),
        "error": refused.error if refused and refused.form.action not in possible else None,
        "runs": runs[:_SHOWN],
        "runs_cut": len(runs) > _SHOWN,
        "files": files_of(schedule),
        "events": events_of(schedule),
    }
    status = refused.error.status if refused else 200
    return render_page(request, "schedule", context, status=status)

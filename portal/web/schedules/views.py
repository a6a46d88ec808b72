"""Pages of schedules: their list, one with its times, and the actions on it."""

from __future__ import annotations

from operator import attrgetter

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from portal.web.shared.action_forms import ActionForm, Refused, offers_of
from portal.web.shared.pages import page, render_page
from portal.web.shared.stale_forms import while_seen
from wms.actions.schedules import SCHEDULES
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted, PilotageError
from wms.schedules.models import Schedule
from wms.schedules.selectors import (
    events_of,
    files_of,
    find_schedule,
    listed_schedules,
    runs_of,
)
from wms.schedules.states import ScheduleState

#: Schedules, and times of one, that a page shows.
_SHOWN = 100


@require_safe
@page
def schedule_list(request: HttpRequest) -> HttpResponse:
    """Schedules that have not been removed, latest first; all of them with `?all=1`."""
    rows = listed_schedules(request.user)
    shows_all = request.GET.get("all") == "1"
    if not shows_all:
        rows = rows.exclude(state=ScheduleState.REMOVED)
    found = list(rows[: _SHOWN + 1])
    context = {
        "schedules": found[:_SHOWN],
        "is_cut": len(found) > _SHOWN,
        "shows_all": shows_all,
    }
    return render_page(request, "schedules", context)


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


def _page(
    request: HttpRequest, schedule_id: int, *, refused: Refused | None = None
) -> HttpResponse:
    schedule = find_schedule(request.user, schedule_id)
    possible = SCHEDULES.possible_on_page(request.user, schedule)

    def address(name: str) -> str:
        return reverse("web:steer-schedule", args=[schedule.pk, name])

    runs = list(runs_of(schedule)[: _SHOWN + 1])
    context = {
        "schedule": schedule,
        "offers": offers_of(possible, schedule.state, address, refused=refused),
        "error": refused.error if refused and refused.form.action not in possible else None,
        "runs": runs[:_SHOWN],
        "runs_cut": len(runs) > _SHOWN,
        "files": files_of(schedule),
        "events": events_of(schedule),
    }
    status = refused.error.status if refused else 200
    return render_page(request, "schedule", context, status=status)

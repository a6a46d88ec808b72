"""Views of downtimes: list, calendar, one downtime, enter, change and cancel."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from portal.personal.selectors import preferences_of
from portal.web.lists.listing import show_list
from portal.web.shared.forms import ReasonForm
from portal.web.shared.pages import page, render_page
from portal.web.sites.downtime_calendar import MOST, STRETCHES, day_range_of, days_of, rows_of
from portal.web.sites.downtime_forms import (
    DowntimeForm,
    faults_of,
    form_of,
    new_form,
    zone_of_form,
)
from wms.core.actors import Actor
from wms.core.errors import NotFound, NotPermitted, PilotageError, ReasonRequired
from wms.sites.downtimes.models import Downtime
from wms.sites.downtimes.selectors import (
    DowntimeState,
    downtimes_between,
    find_downtime,
    overlapping,
)
from wms.sites.downtimes.services import (
    DowntimeTerms,
    add_downtimes,
    cancel_downtimes,
    change_downtime,
    terms_of,
)
from wms.sites.policy import may_steer, require_steering, steerable_sites

_POSTABLE = ["GET", "HEAD", "POST"]


@require_safe
@page
def downtime_list(request: HttpRequest) -> HttpResponse:
    """Downtimes, latest entered first."""
    return show_list(request, "downtimes", may_enter=_may_enter(request))


@require_safe
@page
def calendar(request: HttpRequest) -> HttpResponse:
    """Calendar: the downtimes of some weeks, drawn for each site. Two queries."""
    now, zone = timezone.now(), zone_of_form(preferences_of(request.user))
    stretch = day_range_of(
        request.GET.get("from", ""), request.GET.get("days", ""), now=now, zone=ZoneInfo(zone)
    )
    found = list(downtimes_between(request.user, stretch.start, stretch.end)[: MOST + 1])
    step = timedelta(days=stretch.days)
    context = {
        "stretch": stretch,
        "last": stretch.first + step - timedelta(days=1),
        "days": days_of(stretch, now),
        "rows": rows_of(found[:MOST], stretch),
        "is_cut": len(found) > MOST,
        "now_x": stretch.place(now) if stretch.start <= now < stretch.end else None,
        "zone": zone,
        "stretches": STRETCHES,
        "earlier": stretch.first - step,
        "later": stretch.first + step,
        "may_enter": _may_enter(request),
    }
    return render_page(request, "downtime_calendar", context)


@require_http_methods(_POSTABLE)
@page
def new(request: HttpRequest) -> HttpResponse:
    """Enter a downtime at one or several sites; a refusal is shown in the form.

    Whoever enters one that overlaps others is told of these first.
    """
    if not _may_enter(request):
        require_steering(Actor.person(request.user), "enter downtimes")
    if request.method == "POST":
        return _enter(request)
    zone = zone_of_form(preferences_of(request.user))
    return _form_page(request, new_form(zone, timezone.now()), request.GET.getlist("site"))


def _enter(request: HttpRequest) -> HttpResponse:
    form, chosen = DowntimeForm(request.POST), request.POST.getlist("site")
    try:
        terms = form.terms()
        found = overlapping(chosen, start=terms.start, end=terms.end)
        if found and "overlaps" not in request.POST:
            return _form_page(request, form, chosen, overlaps=found)
        entered = add_downtimes(chosen, **_options(terms), **_who(request))
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return _form_page(request, form, chosen, error=error)
    sites = ", ".join(each.site.name for each in entered)
    messages.success(request, f"The downtime of {sites} is entered.")
    if len(entered) == 1:
        return redirect("web:downtime", downtime_id=entered[0].pk)
    return redirect("web:downtimes")


def _form_page(
    request: HttpRequest,
    form: DowntimeForm,
    chosen: Sequence[str],
    *,
    error: PilotageError | None = None,
    overlaps: Sequence[Downtime] = (),
) -> HttpResponse:
    context = {
        "form": form,
        "zone": form["zone"].value() or "UTC",
        "sites": steerable_sites(request.user).order_by("name").values_list("name", flat=True),
        "chosen": frozenset(chosen),
        "error": error,
        "faults": faults_of(error),
        "overlaps": overlaps,
        "zone_is_browsers": _zone_is_browsers(request),
    }
    status = error.status if error else 409 if overlaps else 200
    return render_page(request, "downtime_new", context, status=status)


@require_safe
@page
def downtime_page(request: HttpRequest, downtime_id: int) -> HttpResponse:
    """One downtime, with the forms to change and end it."""
    return _downtime_page(request, downtime_id)


def _downtime_page(
    request: HttpRequest,
    downtime_id: int,
    *,
    form: DowntimeForm | None = None,
    error: PilotageError | None = None,
    opened: str = "",
) -> HttpResponse:
    downtime = find_downtime(request.user, downtime_id)
    zone = zone_of_form(preferences_of(request.user))
    form = form or form_of(downtime, zone)
    state: str = downtime.state  # type: ignore[attr-defined]
    has_ended = state in {DowntimeState.OVER, DowntimeState.CANCELLED}
    others = overlapping([downtime.site.name], start=downtime.start, end=downtime.end)
    context = {
        "downtime": downtime,
        "seen": terms_of(downtime).version,
        "form": form,
        "reason_form": ReasonForm(request.POST if opened == "cancel" else None),
        "zone": form["zone"].value() or "UTC",
        "zone_is_browsers": _zone_is_browsers(request),
        "error": error,
        "faults": faults_of(error) if opened == "change" else {},
        "opened": opened,
        "has_ended": has_ended,
        "may_steer": not has_ended and may_steer(request.user, downtime.site),
        "others": [] if has_ended else [each for each in others if each.pk != downtime.pk],
    }
    return render_page(request, "downtime", context, status=error.status if error else 200)


@require_http_methods(_POSTABLE)
@page
def change(request: HttpRequest, downtime_id: int) -> HttpResponse:
    """Change the times or reason of a downtime; if it was changed meanwhile, show that instead."""
    if request.method != "POST":
        return redirect("web:downtime", downtime_id=downtime_id)
    form = DowntimeForm(request.POST)
    find_downtime(request.user, downtime_id)
    try:
        seen = request.POST.get("seen", "")
        change_downtime(downtime_id, terms=form.terms(), seen=seen, **_who(request))
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return _downtime_page(request, downtime_id, form=form, error=error, opened="change")
    messages.success(request, "The downtime is changed.")
    return redirect("web:downtime", downtime_id=downtime_id)


@require_http_methods(_POSTABLE)
@page
def cancel(request: HttpRequest, downtime_id: int) -> HttpResponse:
    """Cancel a coming downtime; a running one ends now."""
    if request.method != "POST":
        return redirect("web:downtime", downtime_id=downtime_id)
    downtime = find_downtime(request.user, downtime_id)
    who = _who(request)
    require_steering(who["actor"], "cancel downtimes", downtime.site)
    try:
        reason = ReasonForm(request.POST).options()["reason"]
        if not reason:
            raise ReasonRequired("cancel")
        cancel_downtimes([downtime_id], reason=reason, seen=request.POST.get("seen", ""), **who)
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return _downtime_page(request, downtime_id, error=error, opened="cancel")
    has_begun = downtime.start <= who["now"]
    messages.success(request, f"The downtime is {'ended' if has_begun else 'cancelled'}.")
    return redirect("web:downtime", downtime_id=downtime_id)


def _who(request: HttpRequest) -> dict[str, Any]:
    now: datetime = timezone.now()
    return {"actor": Actor.person(request.user), "now": now}


def _options(terms: DowntimeTerms) -> dict[str, Any]:
    return {
        "start": terms.start,
        "end": terms.end,
        "lead_time_s": terms.lead_time_s,
        "reason": terms.reason,
    }


def _may_enter(request: HttpRequest) -> bool:
    return steerable_sites(request.user).exists()


def _zone_is_browsers(request: HttpRequest) -> bool:
    return preferences_of(request.user).time_zone == "browser"

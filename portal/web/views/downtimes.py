"""Entering and cancelling downtimes on a site's page."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from portal.web.forms import DowntimeForm
from portal.web.pages import page
from portal.web.views.sites import show_site
from wms.core.actors import Actor
from wms.core.errors import NotFound, NotPermitted, PilotageError
from wms.sites.downtimes import add_downtime, cancel_downtimes
from wms.sites.policy import require_steering
from wms.sites.selectors import find_listed_site, planned_downtimes


@require_http_methods(["GET", "HEAD", "POST"])
@page
def add(request: HttpRequest, name: str) -> HttpResponse:
    """Enter a downtime; a refusal is shown at the form that was sent.

    Whoever had to log in again comes here by GET, and is led to the form.
    """
    site = find_listed_site(request.user, name)
    if request.method != "POST":
        return redirect("web:site", name=site.name)
    actor = Actor.person(request.user)
    require_steering(actor, "enter downtimes", site)
    try:
        options = DowntimeForm(request.POST).options()
        downtime = add_downtime(site.name, **options, actor=actor, now=timezone.now())
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return show_site(request, site, opened="downtime", error=error)
    times = f"{downtime.start:%Y-%m-%d %H:%M} to {downtime.end:%Y-%m-%d %H:%M} UTC"
    messages.success(request, f"The downtime from {times} is entered.")
    return redirect("web:site", name=site.name)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def cancel(request: HttpRequest, name: str, downtime_id: int) -> HttpResponse:
    """Take a downtime out of the calendar; one that runs ends now.

    Whoever had to log in again comes here by GET, and is led to the list.
    """
    site = find_listed_site(request.user, name)
    now = timezone.now()
    if request.method == "POST":
        actor = Actor.person(request.user)
        require_steering(actor, "cancel downtimes", site)
        if not planned_downtimes(site, now).filter(pk=downtime_id).exists():
            raise NotFound(f"{site.name} has no downtime {downtime_id} that could be cancelled.")
        cancel_downtimes([downtime_id], actor=actor, now=now)
        messages.success(request, "The downtime is cancelled.")
    return redirect("web:site", name=site.name)

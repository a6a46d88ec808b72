"""The list of sites and a site's page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from portal.filters import DagFilter, PilotFilter
from portal.web.board import site_lines
from portal.web.forms import ReasonForm
from portal.web.pages import may_configure, page, render_page
from wms.core.actors import Actor
from wms.core.errors import NotFound, NotPermitted, PilotageError
from wms.dags.selectors import listed_dags
from wms.dags.states import DAG_ACTIVE
from wms.pilots.selectors import listed_pilots, live_pilots_by_queue
from wms.pilots.states import ALIVE
from wms.sites.models import Site
from wms.sites.policy import may_steer
from wms.sites.selectors import events_of_site, find_listed_site, planned_downtimes
from wms.sites.services import ban_site, drain_site, unban_site
from wms.sites.standing import standing_of
from wms.sites.states import TRANSITIONS

_EVENTS_SHOWN = 50
_LINES = 25


@dataclass(frozen=True, slots=True)
class Steering:
    """A decision about a site."""

    event: str
    label: str
    explanation: str
    done: str
    service: Callable[..., Site]


STEERINGS = {
    "drain": Steering(
        event="drain",
        label="Drain",
        explanation="The site takes no new DAG. Those bound to it go on and get pilots.",
        done="is draining",
        service=drain_site,
    ),
    "unban": Steering(
        event="unban",
        label="Open",
        explanation="The site takes DAGs and pilots again.",
        done="is open",
        service=unban_site,
    ),
    "ban": Steering(
        event="ban",
        label="Ban",
        explanation="The site takes nothing new: no DAG, no pilot. What runs there goes on.",
        done="is banned",
        service=ban_site,
    ),
}


@require_safe
@page
def site_list(request: HttpRequest) -> HttpResponse:
    """All sites with what they have to do now."""
    lines = site_lines(request.user, now=timezone.now())
    return render_page(request, "sites", {"lines": lines, "may_configure": may_configure(request)})


@require_safe
@page
def site_page(request: HttpRequest, name: str) -> HttpResponse:
    """A site's standing, ad, queues, pilots, DAGs and events."""
    return _site_page(request, find_listed_site(request.user, name))


def _site_page(
    request: HttpRequest, site: Site, *, opened: str = "", error: PilotageError | None = None
) -> HttpResponse:
    now, user = timezone.now(), request.user
    dags = DagFilter({"site": site.name, "state": sorted(DAG_ACTIVE)}, queryset=listed_dags(user))
    pilots = PilotFilter({"site": site.name, "state": sorted(ALIVE)}, queryset=listed_pilots(user))
    events = list(events_of_site(site)[: _EVENTS_SHOWN + 1])
    context = {
        "site": site,
        "ad": getattr(site, "ad", None),
        "advertisement": getattr(site, "advertisement", None),
        "throttle": getattr(site, "throttle", None),
        "standing": standing_of(site, now),
        "downtimes": list(planned_downtimes(site, now)[:_LINES]),
        "steerings": _steerings(request, site),
        "opened": opened,
        "error": error,
        "form": ReasonForm(request.POST or None),
        "now": now,
        "queues": _queue_lines(site),
        "dags": dags.qs[:_LINES],
        "pilots": pilots.qs[:_LINES],
        "events": events[:_EVENTS_SHOWN],
        "events_cut": len(events) > _EVENTS_SHOWN,
        "may_configure": may_configure(request),
    }
    return render_page(request, "site", context, status=error.status if error else 200)


def _steerings(request: HttpRequest, site: Site) -> list[Steering]:
    """What the user can do with the site as it is now."""
    if not may_steer(request.user):
        return []
    return [each for each in STEERINGS.values() if site.state in TRANSITIONS[each.event].sources]


@require_http_methods(["GET", "HEAD", "POST"])
@page
def steer(request: HttpRequest, name: str, event: str) -> HttpResponse:
    """Ban, drain or unban a site; a refusal is shown at the form that was sent.

    Whoever had to log in again comes here by GET, and is led to the form.
    """
    site = find_listed_site(request.user, name)
    if event not in STEERINGS:
        raise NotFound(f"A site cannot be steered by {event!r}.")
    if request.method != "POST":
        return redirect("web:site", name=site.name)
    steering = STEERINGS[event]
    try:
        options = ReasonForm(request.POST).options()
        steering.service(site.name, actor=Actor.person(request.user), **options)
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return _site_page(request, site, opened=event, error=error)
    messages.success(request, f"{site.name} {steering.done}.")
    return redirect("web:site", name=site.name)


def _queue_lines(site: Site) -> list[dict[str, object]]:
    live = live_pilots_by_queue()
    return [
        {
            "queue": queue,
            "queued": counts.get("submitted", 0) + counts.get("queued", 0),
            "running": counts.get("running", 0),
            "stalled": counts.get("stalled", 0),
        }
        for queue in site.queues.all()
        for counts in [live.get(queue.pk, {})]
    ]

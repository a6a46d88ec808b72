"""The list of sites and a site's page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.filters import DagFilter, PilotFilter
from portal.web.board import site_lines
from portal.web.pages import page, render_page
from wms.core.errors import NotFound
from wms.core.models import Role
from wms.core.policy import has_role
from wms.dags.selectors import listed_dags
from wms.dags.states import DAG_ACTIVE
from wms.pilots.selectors import listed_pilots, live_pilots_by_queue
from wms.pilots.states import ALIVE
from wms.sites.models import Site
from wms.sites.selectors import events_of_site, listed_sites

_EVENTS_SHOWN = 50
_LINES = 25


@require_safe
@page
def site_list(request: HttpRequest) -> HttpResponse:
    """All sites with what they have to do now."""
    lines = site_lines(request.user, now=timezone.now())
    return render_page(request, "sites", {"lines": lines, "may_configure": _may_configure(request)})


@require_safe
@page
def site_page(request: HttpRequest, name: str) -> HttpResponse:
    """A site's ad, queues, pilots, DAGs and events."""
    now = timezone.now()
    site = listed_sites(request.user).filter(name=name).first()
    if site is None:
        raise NotFound(f"There is no site {name!r}.")
    user = request.user
    dags = DagFilter({"site": name, "state": sorted(DAG_ACTIVE)}, queryset=listed_dags(user))
    pilots = PilotFilter({"site": name, "state": sorted(ALIVE)}, queryset=listed_pilots(user))
    events = list(events_of_site(site)[: _EVENTS_SHOWN + 1])
    context = {
        "site": site,
        "ad": getattr(site, "ad", None),
        "now": now,
        "queues": _queue_lines(site),
        "dags": dags.qs[:_LINES],
        "pilots": pilots.qs[:_LINES],
        "events": events[:_EVENTS_SHOWN],
        "events_cut": len(events) > _EVENTS_SHOWN,
        "may_configure": _may_configure(request),
    }
    return render_page(request, "site", context)


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


def _may_configure(request: HttpRequest) -> bool:
    return request.user.is_staff and has_role(request.user, Role.OPERATOR)

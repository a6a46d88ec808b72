"""Views of the site page and of its actions ban, drain and unban."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from portal.history.parts import Part
from portal.lists.filters import DagFilter, PilotFilter
from portal.shared.efficiency import EfficiencyQuery
from portal.shared.site_lines import matched_at
from portal.web.history.charts import PANELS
from portal.web.jobs.needs import offer_of, reserved_for
from portal.web.records.waste import WasteLine, shown_lines
from portal.web.remarks.notes import notes_on
from portal.web.shared.action_forms import ActionForm, Offer, Refused, offers_of
from portal.web.shared.pages import page, render_page
from portal.web.shared.stale_forms import seen_by
from portal.web.sites.suspects import suspect_lines
from wms.accounting.accounts import UseBy, UseOf
from wms.actions.sites_and_pilots import SITES
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted, PilotageError
from wms.dags.negotiation.requests import load_at
from wms.dags.reading.selectors import listed_dags
from wms.dags.states import DAG_ACTIVE
from wms.failures.selectors import Window
from wms.history.success import Success, success_at
from wms.pilots.monitoring.suspects import as_seen, suspects_at
from wms.pilots.pressure.selectors import queue_statuses, unanswered_sites
from wms.pilots.program.checks import FAILURES_TOLD_FOR, failed_checks_at
from wms.pilots.selectors import listed_pilots
from wms.pilots.states import ALIVE
from wms.remarks.states import SubjectKind
from wms.sites.ads import Attribute, current_ad
from wms.sites.models import Site
from wms.sites.policy import may_configure, may_steer
from wms.sites.selectors import (
    events_of_site,
    find_visible_site,
    planned_downtimes,
    site_named,
    visible_sites,
)
from wms.sites.standing import standing_under, with_standing_facts

_EVENTS_SHOWN = 50
_LINES = 25
_CHARTS = ("pilots", "jobs", "success")


@require_safe
@page
def site_page(request: HttpRequest, name: str) -> HttpResponse:
    """Page of a site: state, ad, queues, pilots, DAGs and events."""
    return show_site(request, name)


def show_site(request: HttpRequest, name: str, *, refused: Refused | None = None) -> HttpResponse:
    """Site page; the form of a refused action is open and shows the reason."""
    error = refused.error if refused else None
    now, user = timezone.now(), request.user
    site = site_named(with_standing_facts(visible_sites(user)), name)
    dags = DagFilter({"site": site.name, "state": sorted(DAG_ACTIVE)}, queryset=listed_dags(user))
    pilots = PilotFilter({"site": site.name, "state": sorted(ALIVE)}, queryset=listed_pilots(user))
    events = list(events_of_site(site)[: _EVENTS_SHOWN + 1])
    # All of them: one that is far off may have begun to count already, by a long lead time.
    downtimes = list(planned_downtimes(site, now))
    failed_checks = list(failed_checks_at(user, site, since=now - FAILURES_TOLD_FOR)[: _LINES + 1])
    queues = queue_statuses(user, site)
    ad_lines, ad_fault = _merged_ad(site)
    may = may_steer(user, site)
    context = {
        "site": site,
        "ad": getattr(site, "ad", None),
        "advertisement": getattr(site, "advertisement", None),
        "throttle": getattr(site, "throttle", None),
        "standing": standing_under(site, downtimes, now),
        "is_unanswered": site.pk in unanswered_sites(now),
        "downtimes": downtimes[:_LINES],
        "downtimes_cut": len(downtimes) > _LINES,
        "offers": _offers(request, site, refused),
        "error": error,
        "may_steer": may,
        "notes": notes_on(SubjectKind.SITE, site, may_write=may),
        "matched": matched_at(site, load_at(Site.objects.filter(pk=site.pk))),
        "ad_lines": ad_lines,
        "ad_fault": ad_fault,
        "now": now,
        "queues": [(each, offer_of(each.queue), reserved_for(each.queue)) for each in queues],
        "dags": dags.qs[:_LINES],
        "suspects": suspect_lines(user, as_seen(user, suspects_at(site))),
        "failed_checks": failed_checks[:_LINES],
        "failed_checks_cut": len(failed_checks) > _LINES,
        "pilots": pilots.qs[:_LINES],
        "success": _success_at(site, now),
        "panels": [PANELS[name] for name in _CHARTS],
        "part": Part(site.name),
        "chart_query": "?" + urlencode({"range": "1d", "site": site.name}),
        "waste": _waste_at(request, site, now),
        "events": events[:_EVENTS_SHOWN],
        "events_cut": len(events) > _EVENTS_SHOWN,
        "may_configure": may_configure(user, site),
    }
    return render_page(request, "site", context, status=error.status if error else 200)


def _success_at(site: Site, now: datetime) -> list[tuple[str, Window, Success]]:
    """Success of the last day and week, each with the window of failures that it leads to."""
    found = success_at(site.name, now)
    return [("last day", Window.DAY, found.day), ("last week", Window.WEEK, found.week)]


def _waste_at(request: HttpRequest, site: Site, now: datetime) -> list[WasteLine]:
    question = EfficiencyQuery(UseBy.SITE, of=UseOf(site=site.name))
    return shown_lines(question.answer(request.user, today=now.astimezone(UTC).date()).lines)


def _merged_ad(site: Site) -> tuple[dict[str, Attribute], str]:
    """Ad of the site by attribute, in alphabetical order, or why it cannot be made."""
    try:
        return dict(sorted(current_ad(site).items(), key=lambda line: line[0].lower())), ""
    except Conflict as error:
        return {}, str(error)


def _offers(request: HttpRequest, site: Site, refused: Refused | None) -> list[Offer]:
    """Forms of the actions that the user may take on the site now."""
    return offers_of(
        SITES.possible_on_page(request.user, site),
        site.state,
        lambda name: reverse("web:steer-site", args=[site.name, name]),
        refused=refused,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@page
def steer(request: HttpRequest, name: str, event: str) -> HttpResponse:
    """Ban, drain or unban a site; a refusal is shown at the form that was sent.

    Whoever had to log in again comes here by GET, and is led to the form.
    """
    site = find_visible_site(request.user, name)
    action = SITES.find_on_page(event)
    if action is None:
        raise NotFound(f"A site cannot be steered by {event!r}.")
    if request.method != "POST":
        return redirect("web:site", name=site.name)
    form = ActionForm(action, request.POST)
    try:
        action.act(site.name, form.order(Actor.person(request.user), seen=seen_by(request)))
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return show_site(request, name, refused=Refused(form, error))
    messages.success(request, f"{site.name} {action.done}.")
    return redirect("web:site", name=site.name)

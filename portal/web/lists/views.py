"""Views of the list pages of DAGs, jobs, clusters, pilots, placement requests and sites."""

from __future__ import annotations

from collections import Counter

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from portal.lists.base_filter import is_wanted
from portal.lists.filter_fields import Chosen
from portal.lists.registry import find_list
from portal.lists.sorting import Order
from portal.shared.site_lines import SiteLine, behind, border_of, in_order, site_lines
from portal.web.lists.listing import (
    Listing,
    facets_of,
    framed,
    is_valid_filter,
    show_list,
    show_listing,
)
from portal.web.lists.paging import Page, way
from portal.web.shared.pages import may_configure, page
from wms.core.database.counting import Count
from wms.placement.feeding.selectors import seen_feeder
from wms.sites.standing import STANDING_WORDS

_SITES_SHOWN = 100


@require_safe
@page
def dag_list(request: HttpRequest) -> HttpResponse:
    """DAGs, latest first."""
    return show_list(request, "dags")


@require_safe
@page
def job_list(request: HttpRequest) -> HttpResponse:
    """Jobs, latest first."""
    return show_list(request, "jobs")


@require_safe
@page
def cluster_list(request: HttpRequest) -> HttpResponse:
    """Clusters, latest first."""
    return show_list(request, "clusters")


@require_safe
@page
def pilot_list(request: HttpRequest) -> HttpResponse:
    """Pilots, latest first."""
    return show_list(request, "pilots")


@require_safe
@page
def placement_list(request: HttpRequest) -> HttpResponse:
    """Placement requests, latest first, and for operators the feeder, if there is one."""
    return show_list(request, "placements", feeder=seen_feeder(request.user))


@require_safe
@page
def site_list(request: HttpRequest) -> HttpResponse:
    """Sites with their present load, by name."""
    return show_listing(request, _sites(request), may_configure=may_configure(request))


def _sites(request: HttpRequest) -> Listing:
    """Sites of the list. They are few: the state of all is computed before filtering."""
    kind = find_list("sites")
    list_filter = kind.filter_of(request.GET, request.user)
    if not is_valid_filter(list_filter):
        return framed(request, kind, list_filter)
    chosen: Chosen = list_filter.form.cleaned_data["standing"] or Chosen()
    every = site_lines(request.user, now=list_filter.now)
    if list_filter.parameters().keys() - {"standing"}:
        named = set(list_filter.without("standing").values_list("pk", flat=True))
        every = [line for line in every if line.site.pk in named]
    wanted = [line for line in every if is_wanted(line.state, chosen)]
    counts = Counter(line.state for line in every)
    words = [word for word in STANDING_WORDS if counts[word] or word in chosen.included]
    page = _site_page(request, in_order(wanted, list_filter.order), list_filter.order)
    return framed(
        request,
        kind,
        list_filter,
        facets=facets_of(request.GET, "standing", {word: counts[word] for word in words}, chosen),
        total=Count(len(every)),
        chosen_total=Count(len(wanted)),
        page=page,
        lines=page.rows,
    )


def _site_page(request: HttpRequest, lines: list[SiteLine], order: Order) -> Page[SiteLine]:
    """Page of the list after the site in the address, or the first page."""
    border = order.parse(request.GET.get("from", ""))
    rest = lines if border is None else behind(lines, order, border)
    shown, is_more = rest[:_SITES_SHOWN], len(rest) > _SITES_SHOWN
    return Page(
        rows=shown,
        newer=way(request.GET) if border is not None else "",
        older=way(request.GET, **{"from": border_of(shown[-1], order)}) if is_more else "",
    )

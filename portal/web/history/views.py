"""History page, and the JSON data and HTML tables of its charts."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from matching.round_robin_archives import ARCHIVES
from portal.history.groupings import MOST_TOP, USUAL_TOP, GroupBy
from portal.history.panes import find_pane, panes
from portal.history.parts import WHOLE
from portal.history.windows import FUNCTIONS, WindowForm, window_of
from portal.personal.zones import zone_named
from portal.web.history.charts import chart_data, chart_table
from portal.web.history.range_links import Timeline
from portal.web.shared.pages import page
from wms.accounting.frontends import called
from wms.history.annotations import annotations_between
from wms.history.frontends import frontends_to_choose
from wms.sites.selectors import visible_sites


@require_safe
@page
def history(request: HttpRequest) -> HttpResponse:
    """History page: the chosen panes in one window of time; no pane if the window is invalid."""
    form = WindowForm(request.GET, now=timezone.now(), user=request.user)
    sites = list(visible_sites(request.user).order_by("name").values_list("name", flat=True))
    _check_site(form, sites)
    unknown = sorted(set(request.GET.getlist("pane")) - set(panes()))
    context: dict[str, Any] = {
        "form": form,
        "faults": {name: texts[0] for name, texts in form.errors.items()},
        "query": request.GET,
        "unknown": unknown,
        "sites": sites,
        "frontends": [(key, called(key)) for key in frontends_to_choose(request.user)],
        "functions": FUNCTIONS.items(),
        "groupings": list(GroupBy),
        "usual_top": USUAL_TOP,
        "most_top": MOST_TOP,
        "resolutions": ["auto", *(ring.name for ring in ARCHIVES)],
        "all_panes": panes().values(),
        "timeline": Timeline(None, request.GET.getlist("pane")),
    }
    if form.is_valid() and not unknown:
        window = window_of(form)
        marks = annotations_between(
            request.user, since=window.since, until=window.until, site=window.part.site
        )
        context |= {
            "window": window,
            "timeline": Timeline(window, request.GET.getlist("pane")),
            "marks": marks,
        }
    return render(request, "web/history.html", context)


def _check_site(form: WindowForm, known: list[str]) -> None:
    site = form.cleaned_data.get("site") if form.is_valid() else ""
    if site and site not in known:
        form.add_error("site", f"There is no site {site}, or you may not see it.")


@require_safe
@gzip_page
@page
def history_data(request: HttpRequest, panel: str) -> HttpResponse:
    """Chart data of one pane, in the time of `zone`; with `fit` what there is of it."""
    pane = find_pane(panel)
    window = window_of(WindowForm(request.GET, now=timezone.now(), user=request.user))
    # Of a zone that only the browser knows it is UTC that is drawn, and told.
    zone = zone_named(request.GET.get("zone", "")) or UTC
    is_fitted = "fit" in request.GET
    return JsonResponse(chart_data(pane, window, request.user, zone=zone, is_fitted=is_fitted))


@require_safe
@page
def history_table(request: HttpRequest, panel: str) -> HttpResponse:
    """Bins of one pane as a table: a page of its own, or the part that its chart unfolds."""
    pane = find_pane(panel)
    window = window_of(WindowForm(request.GET, now=timezone.now(), user=request.user))
    context = {
        "pane": pane.titled(window.group_by),
        "window": window,
        "part": window.part if pane.is_of(window.part) else WHOLE,
        "table": chart_table(pane, window, request.user),
        "query": Timeline(window, []).query,
    }
    name = "components/chart_table.html" if request.htmx else "web/history_table.html"
    response = render(request, name, context)
    patch_vary_headers(response, ("HX-Request",))
    return response

"""The history page, and the data behind its charts."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from matching.rings import ARCHIVES
from portal.web.charts import (
    PANELS,
    chart_data,
    chart_table,
    find_archive,
    find_panel,
    write_csv,
)
from portal.web.pages import page


@require_safe
@page
def history(request: HttpRequest) -> HttpResponse:
    """All charts of one archive, each with its table."""
    archive = find_archive(request.GET.get("archive", ARCHIVES[0].name))
    now = timezone.now()
    charts = [
        {"panel": panel, "table": chart_table(panel, archive, now=now)} for panel in PANELS.values()
    ]
    context = {"archives": ARCHIVES, "archive": archive, "charts": charts}
    return render(request, "web/history.html", context)


@require_safe
@page
def history_data(request: HttpRequest, panel: str, archive: str, form: str) -> HttpResponse:
    """The bins of one chart as JSON for the script, or as CSV to take away."""
    chosen, ring = find_panel(panel), find_archive(archive)
    now = timezone.now()
    if form == "json":
        return JsonResponse(chart_data(chosen, ring, now=now))
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    name = f"pilotage-{panel}-{archive}-{now:%Y%m%dT%H%MZ}.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    write_csv(response, chosen, ring, now=now)
    return response

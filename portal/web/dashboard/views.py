"""Dashboard page: attention items, counts by state, causes of failure, charts of the history."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.web.dashboard.board import Scope, board_of
from portal.web.history.charts import PANELS
from portal.web.shared.pages import page, render_page
from wms.core.errors import InvalidInput
from wms.failures.selectors import Window

#: The ranges that one can choose: of the failures that are counted, and the chart's name for it.
RANGES = {Window.HOUR: "1h", Window.QUARTER: "6h", Window.DAY: "1d", Window.WEEK: "1w"}


@require_safe
@page
def dashboard(request: HttpRequest) -> HttpResponse:
    """Dashboard: attention items, counts by state, causes of failure, history."""
    scope, window = _scope(request), _window(request)
    board = board_of(request.user, now=timezone.now(), scope=scope, window=window)
    context = {
        "board": board,
        "panel": PANELS["jobs"],
        "ranges": list(RANGES),
        "chart_query": f"?range={RANGES[window]}",
        "is_shared": scope == Scope.ALL,
        "query": request.GET.urlencode(),
    }
    return render_page(request, "dashboard", context)


def _scope(request: HttpRequest) -> Scope:
    text = request.GET.get("show", "")
    if text and text not in [scope.value for scope in Scope]:
        raise InvalidInput.of("must be mine or all", field="show")
    return Scope(text) if text else Scope.usual(request.user)


def _window(request: HttpRequest) -> Window:
    text = request.GET.get("within", "")
    if text and text not in [window.value for window in RANGES]:
        known = ", ".join(window.value for window in RANGES)
        raise InvalidInput.of(f"must be one of {known}", field="within")
    return Window(text) if text else Window.DAY

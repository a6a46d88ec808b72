"""Queue page: pilot pressure now and in the past, what limits it, and the queue's pilots."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.lists.filters import PilotFilter
from portal.web.jobs.needs import offer_of, reserved_for
from portal.web.shared.pages import page, render_page
from wms.pilots.pressure.selectors import find_pressure, owner_lines, records_of
from wms.pilots.selectors import listed_pilots, live_pilots_by_queue
from wms.pilots.states import ALIVE
from wms.sites.policy import may_configure

_LINES = 25
_RECORDS = 60


@require_safe
@page
def queue_page(request: HttpRequest, name: str, queue: str) -> HttpResponse:
    """Pressure on the queue now and before, the limits, and the queue's pilots."""
    pressure = find_pressure(request.user, name, queue)
    row = pressure.queue
    pilots = PilotFilter(
        {"site": row.site.name, "queue": row.name, "state": sorted(ALIVE)},
        queryset=listed_pilots(request.user),
    )
    context = {
        "pressure": pressure,
        "queue": row,
        "site": row.site,
        "live": live_pilots_by_queue([row.pk]).get(row.pk, {}),
        "offer": offer_of(row),
        "reserved_for": reserved_for(row),
        "owners": owner_lines(pressure)[:_LINES],
        "records": records_of(row)[:_RECORDS],
        "pilots": pilots.qs[:_LINES],
        "now": timezone.now(),
        "may_configure": may_configure(request.user, row.site),
    }
    return render_page(request, "queue", context)

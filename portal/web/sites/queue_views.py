"""Views of the queue page: pressure now and in the past, its limits, its pilots and its tests.

Also the action that sends a test pilot there.
"""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from portal.lists.filters import PilotFilter
from portal.web.jobs.needs import offer_of, reserved_for
from portal.web.shared.action_forms import ActionForm, Refused, offers_of
from portal.web.shared.pages import page, render_page
from wms.actions.actions import Action
from wms.actions.queues import QUEUES
from wms.core.actors import Actor
from wms.core.errors import NotFound, NotPermitted, PilotageError
from wms.pilots.models import Pilot
from wms.pilots.pressure.selectors import find_pressure, owner_lines, records_of
from wms.pilots.selectors import listed_pilots, live_pilots_by_queue
from wms.pilots.states import ALIVE
from wms.pilots.testing.selectors import queue_tests, why_closed
from wms.sites.policy import may_configure
from wms.sites.selectors import find_queue

_LINES = 25
_RECORDS = 60
_TESTS = 5


@require_safe
@page
def queue_page(request: HttpRequest, name: str, queue: str) -> HttpResponse:
    """Pressure on the queue now and before, the limits, the queue's pilots and tests."""
    return _show_queue(request, name, queue)


def _show_queue(
    request: HttpRequest, name: str, queue: str, *, refused: Refused | None = None
) -> HttpResponse:
    """Queue page; the form of a refused action is open and shows the reason."""
    pressure, now = find_pressure(request.user, name, queue), timezone.now()
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
        "owners": owner_lines(request.user, pressure)[:_LINES],
        "records": records_of(request.user, row)[:_RECORDS],
        "pilots": pilots.qs[:_LINES],
        "tests": queue_tests(request.user, row, most=_TESTS),
        "connection": pressure.connection,
        "closed": why_closed(row, now),
        "now": now,
        "may_configure": may_configure(request.user, row.site),
        "offers": offers_of(
            QUEUES.possible_on_page(request.user, row),
            "",
            lambda action: reverse(f"web:{action}-queue", args=[row.site.name, row.name]),
            refused=refused,
        ),
    }
    status = refused.error.status if refused else 200
    return render_page(request, "queue", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def steer_queue(request: HttpRequest, name: str, queue: str, *, action: Action) -> HttpResponse:
    """Send a test pilot and lead to its report, or test the connection.

    A refusal is shown at the form.
    Whoever had to log in again comes here by GET, and is led to the queue.
    """
    found = find_queue(request.user, name, queue)
    if request.method != "POST":
        return redirect("web:queue", name=name, queue=queue)
    form = ActionForm(action, request.POST)
    try:
        done = action.act(found.pk, form.order(Actor.person(request.user)))
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return _show_queue(request, name, queue, refused=Refused(form, error))
    if not isinstance(done, Pilot):
        messages.success(request, f"The connection of {found} {action.done}.")
        return redirect("web:queue", name=name, queue=queue)
    messages.success(request, f"Test pilot {done.pk} {action.done}.")
    return redirect("web:pilot", pilot_id=done.pk)

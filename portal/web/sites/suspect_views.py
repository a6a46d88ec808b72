"""Page of a suspected worker node, and the view that clears it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from portal.web.shared.forms import ReasonForm
from portal.web.shared.pages import page, render_page
from portal.web.sites.suspects import suspect_lines
from wms.actions.arguments import Order
from wms.actions.sites_and_pilots import SUSPECTED_NODES
from wms.core.actors import Actor
from wms.core.errors import NotFound, NotPermitted, PilotageError
from wms.pilots.monitoring.suspects import find_suspect

_CLEAR = SUSPECTED_NODES.actions["clear"]


@require_safe
@page
def suspect_page(request: HttpRequest, suspect_id: int) -> HttpResponse:
    """Page of a suspected worker node, with the form that clears it."""
    return _suspect_page(request, suspect_id)


def _suspect_page(
    request: HttpRequest, suspect_id: int, *, error: PilotageError | None = None
) -> HttpResponse:
    node = find_suspect(request.user, suspect_id)
    [line] = suspect_lines(request.user, [node])
    context = {
        "line": line,
        "node": node,
        "form": ReasonForm(request.POST or None),
        "error": error,
        "actions": SUSPECTED_NODES.possible_on_page(request.user, node),
    }
    status = error.status if error else 200
    return render_page(request, "suspected_node", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def clear(request: HttpRequest, suspect_id: int) -> HttpResponse:
    """Clear a suspected worker node; a refusal is shown in the form."""
    node = find_suspect(request.user, suspect_id)
    if request.method != "POST":
        return redirect("web:suspected-node", suspect_id=node.pk)
    try:
        options = ReasonForm(request.POST).options()
        _CLEAR.act(node.pk, Order(Actor.person(request.user), options["reason"]))
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return _suspect_page(request, suspect_id, error=error)
    messages.success(request, f"{node.host} {_CLEAR.done}.")
    return redirect("web:site", name=node.site.name)

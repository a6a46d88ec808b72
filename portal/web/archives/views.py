"""Views of kept archives of DAGs: list, page of one, removal."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from portal.web.archives.tabs import TABS
from portal.web.lists.listing import show_list
from portal.web.shared.action_forms import ActionForm, Refused, offers_of
from portal.web.shared.pages import page
from wms.actions.actions import Action
from wms.actions.archives import ARCHIVES
from wms.archives.models import ArchivedDag
from wms.archives.selectors import find_archive
from wms.core.actors import Actor
from wms.core.errors import NotFound, NotPermitted, PilotageError


@require_safe
@page
def archive_list(request: HttpRequest) -> HttpResponse:
    """Kept archives, latest first."""
    return show_list(request, "archives")


@require_safe
@page
def archive_page(request: HttpRequest, archive_id: int) -> HttpResponse:
    """One archive: overview, nodes, events or files."""
    return _page(request, find_archive(request.user, archive_id))


def _page(
    request: HttpRequest, archive: ArchivedDag, refused: Refused | None = None
) -> HttpResponse:
    tab = request.GET.get("tab", "")
    tab = tab if tab in TABS else "overview"
    error = refused.error if refused else None
    context = {
        "archive": archive,
        "tab": tab,
        "tabs": list(TABS),
        "tab_template": f"web/archive_{tab}.html",
        "offers": offers_of(
            ARCHIVES.possible_on_page(request.user, archive),
            "",
            lambda name: reverse(f"web:{name}-archive", args=[archive.pk]),
            refused=refused,
        ),
        **TABS[tab](archive, request.GET),
    }
    return render(request, "web/archive.html", context, status=error.status if error else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def steer(request: HttpRequest, archive_id: int, *, action: Action) -> HttpResponse:
    """Remove an archive; a GET after a new login is redirected to the form."""
    found = find_archive(request.user, archive_id)
    if request.method != "POST":
        return redirect("web:archive", archive_id=found.pk)
    form = ActionForm(action, request.POST)
    try:
        action.act(found.pk, form.order(Actor.person(request.user)))
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return _page(request, found, Refused(form, error))
    messages.success(request, f"Archive {found.pk} {action.done}.")
    return redirect("web:archives")

"""Views that store what a user set: saved filters, columns of a list, display preferences."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from portal.lists.registry import find_list
from portal.personal.models import SavedFilter
from portal.personal.selectors import find_filter
from portal.personal.services import (
    change_filter,
    choose_columns,
    remove_filter,
    save_filter,
    save_preferences,
    set_default_filter,
)
from portal.web.lists.bar import SAVED, query_of
from portal.web.shared.pages import page
from portal.web.shared.stale_forms import version_of, while_version
from wms.core.actors import Actor

_TRUTH = {"true": True, "false": False}


@require_POST
@page
def save(request: HttpRequest) -> HttpResponse:
    """Save the filter of a list under a name, and show the list with it."""
    kind = find_list(request.POST.get("list", ""))
    actor = Actor.person(request.user)
    saved = save_filter(
        kind.name,
        name=request.POST.get("name", ""),
        parameters=QueryDict(request.POST.get("query", "")),
        is_shared="is_shared" in request.POST,
        actor=actor,
    )
    if "is_default" in request.POST:
        set_default_filter(kind.name, saved.pk, actor=actor)
    messages.success(request, f"The filter {saved.name} is saved.")
    return _to_filter(saved)


def _version_of(saved: SavedFilter) -> str:
    return version_of(saved.name, saved.is_shared)


@require_POST
@page
def change(request: HttpRequest, filter_id: int) -> HttpResponse:
    """Rename a filter, share it, or make it the filter with which its list opens."""
    actor, kept = Actor.person(request.user), find_filter(request.user, filter_id)
    if "name" in request.POST:
        rows = SavedFilter.objects.filter(pk=filter_id)
        with while_version(request, rows, _version_of, what="this filter"):
            kept = change_filter(
                filter_id,
                name=request.POST["name"],
                is_shared="is_shared" in request.POST,
                actor=actor,
            )
    if "default" in request.POST:
        is_default = request.POST["default"] == "true"
        set_default_filter(kept.list_name, filter_id if is_default else None, actor=actor)
    messages.success(request, f"The filter {kept.name} is changed.")
    return _to_filter(kept)


@require_POST
@page
def remove(request: HttpRequest, filter_id: int) -> HttpResponse:
    """Delete a saved filter."""
    gone = remove_filter(filter_id, actor=Actor.person(request.user))
    messages.success(request, f"The filter {gone.name} is removed.")
    return redirect(f"web:{gone.list_name}")


@require_POST
@page
def columns(request: HttpRequest) -> HttpResponse:
    """Choose the columns of a list and its density; `usual` restores the default."""
    actor = Actor.person(request.user)
    chosen = [] if "usual" in request.POST else request.POST.getlist("column")
    choose_columns(request.POST.get("list", ""), chosen, actor=actor)
    if request.POST.get("density"):
        save_preferences({"density": request.POST["density"]}, actor=actor)
    return _back(request)


@require_POST
@page
def preferences(request: HttpRequest) -> HttpResponse:
    """Change theme, time zone, density or shortcuts: those that the form sends."""
    changes: dict[str, Any] = {
        name: request.POST[name]
        for name in ("theme", "time_zone", "density")
        if name in request.POST
    }
    if "has_shortcuts" in request.POST:
        value = request.POST["has_shortcuts"]
        changes["has_shortcuts"] = _TRUTH.get(value, value)
    save_preferences(changes, actor=Actor.person(request.user))
    return HttpResponse(status=204) if request.htmx else _back(request)


def _to_filter(saved: SavedFilter) -> HttpResponse:
    address = redirect(f"web:{saved.list_name}").url
    return HttpResponseRedirect(address + query_of(saved.parameters, **{SAVED: saved.pk}))


def _back(request: HttpRequest) -> HttpResponse:
    """Redirect to the page that had the form."""
    address = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return HttpResponseRedirect(address) if is_ours else redirect("web:dashboard")

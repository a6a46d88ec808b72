"""Views of logical files: list by name, one with its replicas, its removal and forgetting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from portal.web.shared.forms import ReasonForm
from portal.web.shared.pages import page, render_page
from wms.core.actors import Actor
from wms.core.errors import NotFound, NotPermitted, PilotageError
from wms.placement.catalogue.names import url_of
from wms.placement.catalogue.selectors import find_file, page_of_files
from wms.placement.catalogue.services import forget_replica, remove_file
from wms.placement.policy import may_steer
from wms.placement.storages.endpoints import url_below

_FILES = 100
_LONGEST = 1000


class ReplicaForm(ReasonForm):
    """At which storage, and why."""

    storage = forms.CharField(max_length=64, required=False)

    def options(self) -> dict[str, Any]:
        """Options for the service. What is too long counts as nothing."""
        storage = self.cleaned_data["storage"] if self.is_valid() else ""
        return {**super().options(), "storage": storage}


@require_safe
@page
def file_list(request: HttpRequest) -> HttpResponse:
    """Logical files by name, those that begin with what was typed."""
    prefix, after = (
        request.GET.get(name, "").replace("\0", "")[:_LONGEST] for name in ("name", "after")
    )
    files = page_of_files(request.user, prefix=prefix, after=after, limit=_FILES + 1)
    context = {
        "files": files[:_FILES],
        "prefix": prefix,
        "last": files[_FILES - 1].name if len(files) > _FILES else "",
    }
    return render_page(request, "logical_files", context)


@require_safe
@page
def file_page(request: HttpRequest, file_id: int) -> HttpResponse:
    """One logical file with its replicas."""
    return _page(request, file_id)


def _page(request: HttpRequest, file_id: int, error: PilotageError | None = None) -> HttpResponse:
    file = find_file(request.user, file_id)
    replicas = [
        (each, [url_below(line, file.name) for line in each.storage.endpoints.splitlines()])
        for each in file.replicas.all()
    ]
    context = {
        "file": file,
        "url": url_of(file.name),
        "replicas": replicas,
        "may_steer": may_steer(request.user, file.owner_id),
        "form": ReplicaForm(request.POST or None),
        "error": error,
    }
    return render_page(request, "logical_file", context, status=error.status if error else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def remove(request: HttpRequest, file_id: int) -> HttpResponse:
    """Have the file removed from a storage, or from all."""

    def act(options: dict[str, Any]) -> HttpResponse:
        made = remove_file(file_id, actor=Actor.person(request.user), **options)
        messages.success(request, f"Placement request {made} removes the file.")
        return redirect("web:placement", request_id=made)

    return _change(request, file_id, act)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def forget(request: HttpRequest, file_id: int) -> HttpResponse:
    """Take a replica out of the catalogue that its storage has lost."""

    def act(options: dict[str, Any]) -> HttpResponse:
        forget_replica(file_id, actor=Actor.person(request.user), **options)
        messages.success(request, f"The replica at {options['storage']} is forgotten.")
        return redirect("web:logical-files")

    return _change(request, file_id, act)


def _change(
    request: HttpRequest, file_id: int, act: Callable[[dict[str, Any]], HttpResponse]
) -> HttpResponse:
    """Answer of `act`; a refusal is shown on the file's page, to which a GET leads."""
    find_file(request.user, file_id)
    if request.method != "POST":
        return redirect("web:logical-file", file_id=file_id)
    try:
        return act(ReplicaForm(request.POST).options())
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return _page(request, file_id, error)

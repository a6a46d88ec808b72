"""Pages of bulk operations: list, preview of a frozen selection, confirmation, progress.

Also the views that stop an operation or retry what failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from portal.lists.selection import all_shown, named, numbers, still_matching
from portal.web.bulk.page import (
    arguments_of,
    confirmation_of,
    operation_context,
    preview_context,
)
from portal.web.lists.listing import show_list
from portal.web.shared.pages import page, render_page
from wms.actions.registry import find_kind
from wms.bulk import services
from wms.bulk.models import BulkOperation
from wms.bulk.selectors import find_operation
from wms.bulk.states import BulkState
from wms.core.actors import Actor
from wms.core.errors import NotFound, NotPermitted, PilotageError
from wms.core.heavy import heavy_place

#: How often the page of an operation asks for news while it goes on, and when it has ended.
_WORKING_S, _ENDED_S = 2, 60


@require_safe
@page
def bulk_list(request: HttpRequest) -> HttpResponse:
    """Bulk operations that the user may see, latest first."""
    return show_list(request, "bulk")


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new_bulk(request: HttpRequest) -> HttpResponse:
    """Freeze the objects that were chosen in a list, and redirect to the preview.

    Whoever had to log in again comes here by GET, and is led to the list of operations.
    """
    if request.method != "POST":
        return redirect("web:bulk")
    list_name, user = request.POST.get("list", ""), request.user
    find_kind(list_name)
    with heavy_place(user):
        if "all" in request.POST:
            selection = all_shown(request.POST.get("selection", ""), list_name, user)
        else:
            selection = named(list_name, numbers(request.POST.getlist("pick")), user)
        operation = services.freeze(
            selection, action=request.POST.get("action", ""), actor=Actor.person(user)
        )
    return redirect("web:bulk-operation", operation_id=operation.pk)


@require_safe
@page
def bulk_page(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Preview of an operation, or its progress once it is confirmed."""
    return _show(request, find_operation(request.user, operation_id))


def _show(
    request: HttpRequest, operation: BulkOperation, error: PilotageError | None = None
) -> HttpResponse:
    status = error.status if error else 200
    if operation.state == BulkState.PREVIEW:
        with heavy_place(request.user):
            context = preview_context(request, operation, error)
        return render_page(request, "bulk_preview", context, status=status)
    context = operation_context(request, operation)
    context["refresh_s"] = _ENDED_S if operation.ended_at else _WORKING_S
    return render_page(request, "bulk_operation", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def confirm_bulk(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Confirm an operation; a refusal is shown in the preview. Idempotent."""
    operation = find_operation(request.user, operation_id)
    if request.method != "POST":
        return redirect("web:bulk-operation", operation_id=operation_id)
    try:
        given: Mapping[str, Any] = arguments_of(request.POST, operation)
        services.confirm(
            operation_id,
            confirmation_of(request.POST, given),
            actor=Actor.person(request.user),
            matching=still_matching(operation),
        )
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return _show(request, find_operation(request.user, operation_id), error)
    return redirect("web:bulk-operation", operation_id=operation_id)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def stop_bulk(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Stop an operation: pending objects stay as they are."""
    if request.method == "POST":
        services.stop(operation_id, actor=Actor.person(request.user))
        messages.success(request, "The operation is stopped: what is pending stays as it is.")
    return redirect("web:bulk-operation", operation_id=operation_id)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def retry_bulk(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Redirect to a preview of the same action on failed and left-over objects."""
    if request.method != "POST":
        return redirect("web:bulk-operation", operation_id=operation_id)
    again = services.retry(operation_id, actor=Actor.person(request.user))
    return redirect("web:bulk-operation", operation_id=again.pk)

"""Views of storages: list with their spaces, and one with its allocations."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.web.shared.pages import page, render_page
from wms.placement.storages.selectors import (
    StorageUse,
    allocations_at,
    find_storage,
    listed_storages,
    may_configure,
    uses_of,
)

_ALLOCATIONS = 100


@require_safe
@page
def storage_list(request: HttpRequest) -> HttpResponse:
    """All storages with what is allocated there, and what moves."""
    storages = list(listed_storages(timezone.now()))
    uses = uses_of([each.pk for each in storages])
    context = {
        "lines": [(each, uses.get(each.pk, StorageUse())) for each in storages],
        "may_configure": may_configure(request.user),
    }
    return render_page(request, "storages", context)


@require_safe
@page
def storage_page(request: HttpRequest, storage: str) -> HttpResponse:
    """One storage: where it is, its limits, and the allocations that the user may see."""
    now = timezone.now()
    found = find_storage(storage, now)
    allocations = list(allocations_at(request.user, found, now)[: _ALLOCATIONS + 1])
    context = {
        "storage": found,
        "endpoints": found.endpoints.splitlines(),
        "use": uses_of([found.pk]).get(found.pk, StorageUse()),
        "allocations": allocations[:_ALLOCATIONS],
        "allocations_cut": len(allocations) > _ALLOCATIONS,
        "may_configure": may_configure(request.user),
    }
    return render_page(request, "storage", context)

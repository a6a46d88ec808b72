"""Selectors of placement requests that a user may see: list, and one by its id."""

from __future__ import annotations

from django.db.models import QuerySet

from wms.accounting.walls import seen_by
from wms.core.errors import NotFound
from wms.core.models import User
from wms.jobs.policy import in_workspaces
from wms.placement.models import PlacementRequest


def visible_requests(user: User) -> QuerySet[PlacementRequest]:
    """The requests that the user may read: those of the user's frontends."""
    return seen_by(user, PlacementRequest.objects.all(), in_workspaces)


def listed_requests(user: User) -> QuerySet[PlacementRequest]:
    """Visible requests with the columns of a list, latest first."""
    return visible_requests(user).select_related("owner").defer("attributes").order_by("-pk")


def find_request(user: User, request_id: int) -> PlacementRequest:
    """One visible request with its owner. Raises NotFound."""
    request = visible_requests(user).select_related("owner").filter(pk=request_id).first()
    if request is None:
        raise NotFound(f"There is no placement request {request_id}, or you may not see it.")
    return request

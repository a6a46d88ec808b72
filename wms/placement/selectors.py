"""Selectors of placement requests that a user may see: list, and one by its id."""

from __future__ import annotations

from django.db.models import QuerySet

from wms.core.errors import NotFound
from wms.core.models import User
from wms.placement.models import PlacementRequest


def visible_requests(user: User) -> QuerySet[PlacementRequest]:
    """The requests that the user may read: at present all of them."""
    return PlacementRequest.objects.all() if user.is_active else PlacementRequest.objects.none()


def listed_requests(user: User) -> QuerySet[PlacementRequest]:
    """Visible requests with the columns of a list, latest first."""
    return visible_requests(user).select_related("owner").defer("attributes").order_by("-pk")


def find_request(user: User, request_id: int) -> PlacementRequest:
    """One visible request with its owner. Raises NotFound."""
    request = visible_requests(user).select_related("owner").filter(pk=request_id).first()
    if request is None:
        raise NotFound(f"There is no placement request {request_id}, or you may not see it.")
    return request

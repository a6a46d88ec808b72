"""Policy of placement requests: owners make and remove their own, shifters everybody's."""

from __future__ import annotations

from collections.abc import Iterable

from wms.core.actors import Actor
from wms.core.errors import NotPermitted
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.placement.models import PlacementRequest


def may_steer(user: User, owner_id: int) -> bool:
    """True when the user may make or remove requests of this owner."""
    return has_role(user, Role.SHIFTER) or (has_role(user, Role.USER) and owner_id == user.pk)


def require_steering(actor: Actor, requests: Iterable[PlacementRequest]) -> None:
    """Raise NotPermitted unless the actor may steer all of these requests."""
    if actor.is_system:
        return
    refused = [
        request.pk
        for request in requests
        if actor.user is None or not may_steer(actor.user, request.owner_id)
    ]
    if refused:
        raise NotPermitted(
            f"{actor.name} may not steer placement request {', '.join(map(str, refused))}: it "
            f"belongs to another user, and this needs the role {Role.SHIFTER.label}."
        )

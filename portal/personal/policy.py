"""Policy of saved filters: who may change one, and who may share one with all others.

Everybody has filters and preferences of their own. Sharing a filter with all others needs the role
user; a shared filter is changed by its owner, and also by operators.
"""

from __future__ import annotations

from portal.personal.models import SavedFilter
from wms.core.actors import Actor
from wms.core.errors import NotPermitted
from wms.core.models import Role, User
from wms.core.policy import has_role, require_role


def may_change(user: User, saved: SavedFilter) -> bool:
    """True for the owner, and for operators if it is shared."""
    is_own = saved.owner_id == user.pk and user.is_active
    return is_own or (saved.is_shared and has_role(user, Role.OPERATOR))


def require_change(actor: Actor, saved: SavedFilter) -> None:
    """Raise NotPermitted unless the actor may change the filter."""
    if actor.user is None or not may_change(actor.user, saved):
        raise NotPermitted(f"{actor.name} may not change the filter {saved.name}: its owner may.")


def require_sharing(actor: Actor) -> None:
    """Raise NotPermitted unless the actor may share filters."""
    require_role(actor, Role.USER, "share filters")

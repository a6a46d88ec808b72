"""Policy of bulk operations.

- A user and above acts on many objects at once. What may be done to each object is decided by the
  object's own app when its turn comes, for the person as they are then.
- Everybody sees their own operations; shifters and above see everybody's.
- Only who made a preview confirms it. Who made an operation stops it, and so do shifters and above.
- Whoever sees an operation may try again what failed: as an operation of their own.
"""

from __future__ import annotations

from wms.bulk.models import BulkOperation
from wms.core.actors import Actor
from wms.core.errors import NotPermitted
from wms.core.models import Role, User
from wms.core.policy import has_role, require_role


def may_act(user: User) -> bool:
    """Whether the user may act on many objects at once."""
    return has_role(user, Role.USER)


def may_see_all(user: User) -> bool:
    """Whether the user sees the operations of others."""
    return has_role(user, Role.SHIFTER)


def may_stop(user: User, operation: BulkOperation) -> bool:
    """Whether the user may stop this operation."""
    return operation.owner_id == user.pk or has_role(user, Role.SHIFTER)


def require_acting(actor: Actor) -> User:
    """User of the actor. Raises NotPermitted unless they may act on many objects at once."""
    require_role(actor, Role.USER, "act on many objects at once")
    if actor.user is None:
        raise NotPermitted("Only a person acts on many objects at once.")
    return actor.user


def require_stopping(actor: Actor, operation: BulkOperation) -> None:
    """Raise NotPermitted unless the actor may stop this operation."""
    if actor.user is None or not may_stop(actor.user, operation):
        raise NotPermitted(
            f"{actor.name} may not stop bulk operation {operation.pk}: it belongs to another user, "
            f"and this needs the role {Role.SHIFTER.label}."
        )

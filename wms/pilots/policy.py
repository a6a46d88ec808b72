"""Policy of pilots: whether a user may drain or remove them.

- Everybody who is logged in sees every pilot, with its log: it runs everybody's jobs.
- Shifters and above drain pilots, as they may ban a site. What such a pilot runs goes on. They also
  remove pilots at once: what such a pilot runs waits again.
"""

from __future__ import annotations

from wms.core.actors import Actor
from wms.core.models import Role, User
from wms.core.policy import has_role, require_role


def may_steer(user: User) -> bool:
    """True when the user may drain and remove pilots."""
    return has_role(user, Role.SHIFTER)


def require_steering(actor: Actor, action: str) -> None:
    """Raise NotPermitted unless the actor may drain and remove pilots."""
    require_role(actor, Role.SHIFTER, action)

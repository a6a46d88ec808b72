"""Who may do what with a site.

- Everybody who is logged in sees every site, with its ad and what happened to it.
- Shifters and above decide from hour to hour whether a site gets new work: they ban, drain and
  unban it, and enter downtimes. A shift must be able to stop a site that eats jobs at night.
- Operators and above configure sites and queues, and advertise: an advertised ad says which DAGs a
  site takes, so it is configuration. They also say whose private pilots a queue sends: it gives
  that user's jobs places that others do not get.
"""

from __future__ import annotations

from wms.core.actors import Actor
from wms.core.models import Role, User
from wms.core.policy import has_role, require_role


def may_steer(user: User) -> bool:
    """True when the user may open and close sites."""
    return has_role(user, Role.SHIFTER)


def require_steering(actor: Actor, action: str) -> None:
    """Raise NotPermitted unless the actor may open and close sites."""
    require_role(actor, Role.SHIFTER, action)


def require_configuring(actor: Actor, action: str) -> None:
    """Raise NotPermitted unless the actor may say what a site is."""
    require_role(actor, Role.OPERATOR, action)

"""Roles of users in their order, and the check that an actor has one.

- A viewer reads what is not another person's private matter, nor behind the walls of another
  frontend (`wms.accounting.walls`); changes nothing.
- A user submits, and steers what is their own.
- A site administrator also configures and steers the sites that name the user as such, and nothing
  of other sites. Who runs a site does not thereby run the production.
- A shifter steers everybody's DAGs and jobs, and every site; one whom a site names administers it.
- An operator also configures all sites and queues, and what is common to them.
- An admin also manages accounts.

Who came in by a token that is limited to a frontend is a shifter at most: operators and admins
change what concerns all frontends.

Each role includes those before it; docs/reference/roles.md has the table. Also who may enter the
administration pages.
"""

from __future__ import annotations

from wms.core.actors import Actor
from wms.core.errors import NotPermitted
from wms.core.models import Role, User

_ORDER = {role: place for place, role in enumerate(Role.values)}


def has_role(user: User, role: Role) -> bool:
    """True when the user's role includes `role`; superusers have all, inactive users none."""
    if not user.is_active:
        return False
    if user.limited_to is not None and _ORDER[role] > _ORDER[Role.SHIFTER]:
        return False
    return user.is_superuser or _ORDER[user.role] >= _ORDER[role]


def enters_administration(user: User) -> bool:
    """True when the user's role is one that configures: pages then lead to the administration.

    A shifter gets in, too, where a site names the shifter as its administrator.
    """
    return has_role(user, Role.OPERATOR) or (user.is_active and user.role == Role.SITE_ADMIN)


def require_role(actor: Actor, role: Role, action: str) -> None:
    """Raise NotPermitted unless the actor has the role, or is one of the system's loops."""
    if actor.is_system:
        return
    if actor.user is None or not has_role(actor.user, role):
        raise NotPermitted(f"{actor.name} may not {action}: this needs the role {role.label}.")

"""Policy of failure groups and on normalisation rules: checks of who may change them.

Shifters and above mute, resolve and categorise groups: it is what a shift is for. Operators and
above change the rules, which regroup everybody's failures. Who sees which
groups is decided in `wms.failures.seen`.
"""

from __future__ import annotations

from wms.core.actors import Actor
from wms.core.models import Role, User
from wms.core.policy import has_role, require_role


def may_steer(user: User) -> bool:
    """True when the user may mute, resolve and categorise groups."""
    return has_role(user, Role.SHIFTER)


def may_change_rules(user: User) -> bool:
    """True when the user may change the rules that tell causes apart."""
    return has_role(user, Role.OPERATOR)


def require_steering(actor: Actor, action: str) -> None:
    """Raise NotPermitted unless the actor may mute, resolve and categorise groups."""
    require_role(actor, Role.SHIFTER, action)


def require_changing_rules(actor: Actor) -> None:
    """Raise NotPermitted unless the actor may change the rules."""
    require_role(actor, Role.OPERATOR, "change the rules of failures")

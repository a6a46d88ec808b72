"""Policy of schedules: users make and steer their own, shifters and above steer everybody's.

Who sees which is decided in `wms.accounting.walls`, as for DAGs. What a schedule submits is
submitted by its owner, who must be allowed to submit at that time.
"""

from __future__ import annotations

from collections.abc import Iterable

from wms.core.actors import Actor
from wms.core.errors import NotPermitted
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.schedules.models import Schedule


def may_steer(user: User, schedule: Schedule) -> bool:
    """Whether the user may change, pause, resume or remove this schedule."""
    if has_role(user, Role.SHIFTER):
        return True
    return has_role(user, Role.USER) and schedule.owner_id == user.pk


def require_steering(actor: Actor, schedules: Iterable[Schedule]) -> None:
    """Raise NotPermitted unless the actor may steer all of these schedules."""
    if actor.is_system:
        return
    refused = [
        each.pk for each in schedules if actor.user is None or not may_steer(actor.user, each)
    ]
    if refused:
        raise NotPermitted(
            f"{actor.name} may not steer schedule {', '.join(map(str, refused))}: it belongs to "
            f"another user, and this needs the role {Role.SHIFTER.label}."
        )

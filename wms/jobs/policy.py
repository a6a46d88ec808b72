"""Permissions of jobs.

- Everybody who is logged in sees every job, with what it printed: a production is a common matter.
- A user submits, and steers their own jobs.
- Shifters and above steer everybody's.
"""

from __future__ import annotations

from wms.core.actors import Actor
from wms.core.errors import NotPermitted
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.jobs.models import Job


def may_steer(user: User, job: Job) -> bool:
    """True when the user may kill this job, and ask for what it prints."""
    if has_role(user, Role.SHIFTER):
        return True
    return has_role(user, Role.USER) and job.owner_id == user.pk


def require_steering(actor: Actor, job: Job) -> None:
    """Raise NotPermitted unless the actor may steer this job."""
    if actor.is_system or (actor.user is not None and may_steer(actor.user, job)):
        return
    raise NotPermitted(
        f"{actor.name} may not steer job {job.pk}: it belongs to another user, and this needs the "
        f"role {Role.SHIFTER.label}."
    )

"""Policy of jobs and clusters: whether a user may steer one (kill, hold, change, peek at output).

- Everybody who is logged in sees every job, with what it printed: a production is a common matter.
- A user submits, and steers their own jobs.
- Shifters and above steer everybody's.
"""

from __future__ import annotations

from wms.core.actors import Actor
from wms.core.errors import NotPermitted
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.jobs.models import Cluster, Job


def may_steer(user: User, job: Job | Cluster) -> bool:
    """True when the user may kill this job or cluster, and ask for what a job prints."""
    if has_role(user, Role.SHIFTER):
        return True
    return has_role(user, Role.USER) and job.owner_id == user.pk


def require_steering(actor: Actor, job: Job | Cluster) -> None:
    """Raise NotPermitted unless the actor may steer this job or cluster."""
    if actor.is_system or (actor.user is not None and may_steer(actor.user, job)):
        return
    raise NotPermitted(
        f"{actor.name} may not steer {job._meta.verbose_name} {job.pk}: it belongs to another "
        f"user, and this needs the role {Role.SHIFTER.label}."
    )

"""Policy of jobs and clusters: whether a user may steer one (kill, hold, change, peek at output).

- Who sees a job also sees what it printed: a production is a common matter of its frontend's people
  (`wms.accounting.walls`). What one does not see one does not steer either.
- A user submits, and steers their own jobs.
- Shifters and above steer everybody's.
"""

from __future__ import annotations

from django.db.models import Q

from wms.accounting.walls import Walls
from wms.core.actors import Actor
from wms.core.errors import NotPermitted
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.jobs.models import Cluster, Job, Workspace


def in_workspaces(walls: Walls) -> Q:
    """Condition for what has a workspace: that this is of a frontend behind the same walls."""
    return Q(workspace__in=Workspace.objects.filter(walls.by_name()).values("pk"))


def jobs_within(walls: Walls) -> Q:
    """Condition for the jobs that walls let one see."""
    return in_workspaces(walls)


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

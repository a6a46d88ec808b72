"""Services on the TaskQueue policy, the settings of all TaskQueues: read, check, save."""

from __future__ import annotations

from itertools import pairwise

from django.db import transaction

from wms.core.actors import Actor
from wms.core.database.saving import check_row, save_audited
from wms.core.errors import InvalidInput
from wms.core.models import Role
from wms.core.policy import require_role
from wms.taskqueues.models import TaskQueuePolicy


def task_queue_policy() -> TaskQueuePolicy:
    """The policy in force; its defaults, unsaved, as long as nobody has set one."""
    return TaskQueuePolicy.objects.filter(pk=1).first() or TaskQueuePolicy(pk=1)


def check_policy(policy: TaskQueuePolicy) -> None:
    """Raise InvalidInput with the faults of a policy."""
    check_row(policy)
    segments_s = policy.cpu_segments_s
    if not segments_s:
        raise InvalidInput.of("name at least one segment", field="cpu_segments_s")
    for before, after in pairwise(segments_s):
        if before >= after:
            message = f"each segment must be larger than the one before: {after} follows {before}"
            raise InvalidInput.of(message, field="cpu_segments_s")


@transaction.atomic
def save_policy(policy: TaskQueuePolicy, *, actor: Actor, reason: str = "") -> None:
    """Check and store the policy. Raises NotPermitted or InvalidInput.

    Jobs that wait already stay in the TaskQueues of the old segments.
    """
    require_role(actor, Role.OPERATOR, "configure TaskQueues")
    check_policy(policy)
    save_audited(policy, target="TaskQueue policy", actor=actor, reason=reason)

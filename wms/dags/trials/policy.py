"""Policy of trials: users stop their own ones, shifters and above everybody's."""

from __future__ import annotations

from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.dags.models import Trial


def may_stop(user: User, trial: Trial) -> bool:
    """Whether the user may stop this trial."""
    if has_role(user, Role.SHIFTER):
        return True
    return has_role(user, Role.USER) and trial.owner_id == user.pk

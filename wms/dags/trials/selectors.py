"""Selectors of trials that a user may see: the own ones; shifters and above see everybody's."""

from __future__ import annotations

from django.db.models import F, QuerySet

from wms.core.errors import NotFound
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.dags.models import Trial


def visible_trials(user: User) -> QuerySet[Trial]:
    """Trials that the user may see, without their reports, latest first."""
    if not user.is_active:
        return Trial.objects.none()
    trials = Trial.objects.select_related("owner").defer("request", "report", "text")
    own = trials if has_role(user, Role.SHIFTER) else trials.filter(owner=user)
    return own.order_by("-pk")


def listed_trials(user: User) -> QuerySet[Trial]:
    """Visible trials with the names of their DAG files as `dag_files`."""
    return visible_trials(user).annotate(dag_files=F("request__dag_files"))


def find_trial(user: User, trial_id: int) -> Trial:
    """Visible trial with its report and the names of its DAG files. Raises NotFound."""
    trials = listed_trials(user).defer(None).defer("request")
    trial = trials.filter(pk=trial_id).first()
    if trial is None:
        raise NotFound(f"There is no trial {trial_id}, or you may not see it.")
    return trial

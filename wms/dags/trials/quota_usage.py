"""Use of quotas by trials: bytes of the files of those that have not ended."""

from __future__ import annotations

from django.db.models import Sum

from wms.dags.models import Trial
from wms.dags.trials.states import ACTIVE
from wms.jobs.quotas import Holder, Usage


def usage_by_trials(holder: Holder) -> Usage:
    """Bytes of the files of a user's trials that have not ended; groups have none."""
    if holder.user is None:
        return Usage()
    active = Trial.objects.filter(owner=holder.user, state__in=ACTIVE)
    return Usage(size_bytes=active.aggregate(total=Sum("size_bytes"))["total"] or 0)

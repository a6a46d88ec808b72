"""Failures and successes of pilots and DAGs by site, from which the failure throttle follows."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Count, F, Q

from matching.negotiation.failure_throttle import Outcomes
from wms.dags.models import MatchRecord
from wms.pilots.models import Pilot
from wms.pilots.states import PilotState
from wms.sites.models import Site

_END = MatchRecord.End
_FAILED_PILOTS = Q(state__in=[PilotState.FAILED, PilotState.ABORTED])


def site_outcomes(since: datetime, until: datetime) -> dict[int, Outcomes]:
    """Failures and successes of pilots and DAGs that ended in this period, by site.

    Failures are pilots that failed or never registered, and DAGs that failed or were rematched by
    policy. DAGs removed or rematched by people do not count.
    """
    ended = {"ended_at__gte": since, "ended_at__lt": until}
    pilots = Pilot.objects.filter(**ended).values(site_id=F("queue__site_id"))
    # The sites are named so that the index by site and end is used.
    sites = list(Site.objects.values_list("pk", flat=True))
    dags = MatchRecord.objects.filter(site_id__in=sites, **ended).values("site_id")
    counted = [
        *pilots.annotate(
            failures=Count("pk", filter=_FAILED_PILOTS),
            successes=Count("pk", filter=Q(state=PilotState.DONE)),
        ).values_list("site_id", "failures", "successes"),
        *dags.annotate(
            failures=Count("pk", filter=Q(end__in=[_END.FAIL, _END.POLICY])),
            successes=Count("pk", filter=Q(end=_END.COMPLETE)),
        ).values_list("site_id", "failures", "successes"),
    ]
    sums: dict[int, Outcomes] = {}
    for site_id, failures, successes in counted:
        old = sums.get(site_id, Outcomes())
        sums[site_id] = Outcomes(old.failures + failures, old.successes + successes)
    return sums

"""Cycle of the negotiator: publish sites' ads, read requests and usage, decide, bind DAGs.

Also charges used cores to submitters, negotiates DAGs whose jobs are bound at the claim, adjusts
the throttles of sites, stores a record of each cycle, and deletes old records. The reader of
sites' offers serves pages and explanations, too.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import NO_TIME, Bounds, Decision, Request, decide
from wms.accounting.services import charge
from wms.dags.models import NegotiationCycle
from wms.dags.negotiation import late_binding
from wms.dags.negotiation import requests as demand
from wms.dags.negotiation.binding import carry_out
from wms.dags.negotiation.bound import forget_ended_clusters
from wms.dags.negotiation.node_fit import current_fitter
from wms.dags.negotiation.site_performance import site_outcomes
from wms.dags.services.policies import matchmaking_policy
from wms.pilots.figures import figures_by_queue
from wms.placement.storages.selectors import storages_near
from wms.sites import throttling
from wms.sites.ads import publish_ads, read_ads
from wms.sites.standing import standings

#: Time limit of the decision; DAGs without time to look at come first in the next cycle.
DECISION_S = 20.0
#: The same for the acceptance of DAGs whose jobs are bound at the claim; others keep their sites.
ACCEPTANCE_S = 10.0
#: Time limit to compare what nodes need with queues; DAGs whose needs come later are left over.
FITTING_S = 5.0
#: Time limit to evaluate one autocluster at all sites; DAGs whose ads take longer are held.
REQUEST_S = 2.0
#: Time for which the records of cycles are kept.
RECORDS_KEPT = timedelta(days=30)
#: Time for which a record has the unmatched DAGs and their reasons.
DETAILS_KEPT = timedelta(days=1)
_REASONS_KEPT = 10
_DAGS_NAMED = 5
_MAX_REASON_LENGTH = 300


def run_cycle(now: datetime) -> dict[str, Any]:
    """Run one cycle, and store its results and the durations of its phases as a record."""
    timer = _PhaseTimer(time.monotonic)
    _adjust_throttles(now)
    ads = publish_ads(
        demand.loads_by_site(), now=now, figures=figures_by_queue(now), storages=storages_near()
    )
    publish_s = timer.lap()
    charge(demand.used_slots(), half_life_s=matchmaking_policy().priority_half_life_s, now=now)
    offers, fitter = read_offers(now), current_fitter(stopwatch=time.monotonic, limit_s=FITTING_S)
    requests, unseen = _compared(demand.idle_requests(fitter))
    bounds = Bounds(time.monotonic, request_s=REQUEST_S, decision_s=DECISION_S)
    late_bounds = replace(bounds, decision_s=ACCEPTANCE_S)
    late = late_binding.negotiate(offers, fitter, now, bounds=late_bounds)
    usage, limits = demand.usage(offers), demand.concurrency_limits(requests)
    read_s = timer.lap()
    decision = decide(requests, offers, usage, limits, now, bounds=bounds)
    decision.unmatched.update({**late.waiting, **dict.fromkeys(unseen, NO_TIME)})
    decide_s = timer.lap()
    bound = carry_out(decision, offers, now=now)
    cycle = NegotiationCycle.objects.create(
        started_at=now,
        publish_s=publish_s,
        read_s=read_s,
        decide_s=decide_s,
        carry_out_s=timer.lap(),
        ads=ads,
        requests=len(requests) + len(unseen) + late.idle,
        autoclusters=decision.autoclusters,
        matches=len(decision.matches) + late.idle - len(late.waiting),
        bound=bound + late.begun,
        reasons=dict(Counter(left.kind.value for left in decision.unmatched.values())),
        left_over=_left_over(decision),
    )
    _prune_records(now)
    forget_ended_clusters()
    return {**_report(cycle), "moved": late.changed}


def _compared(requests: Sequence[Request]) -> tuple[list[Request], list[int]]:
    """Requests whose needs were compared with the queues, and ids of DAGs without time for that."""
    is_open = [bool(each.nodes) and each.node_fit is None for each in requests]
    compared = [each for each, flag in zip(requests, is_open, strict=True) if not flag]
    return compared, [each.dag_id for each, flag in zip(requests, is_open, strict=True) if flag]


def _left_over(decision: Decision) -> list[dict[str, Any]]:
    """Most frequent reasons of unmatched DAGs, with their numbers of DAGs and some ids."""
    ids: dict[str, list[int]] = defaultdict(list)
    for dag_id, left in decision.unmatched.items():
        ids[left.text[:_MAX_REASON_LENGTH]].append(dag_id)
    most = sorted(ids, key=lambda reason: -len(ids[reason]))[:_REASONS_KEPT]
    return [
        {"reason": reason, "count": len(ids[reason]), "dags": ids[reason][:_DAGS_NAMED]}
        for reason in most
    ]


def _prune_records(now: datetime) -> None:
    """Delete old records, and the details of those from a day ago.

    Only a few rows are looked at: details missed by a stopped negotiator go with their record.
    """
    NegotiationCycle.objects.filter(started_at__lt=now - RECORDS_KEPT).delete()
    over = now - DETAILS_KEPT
    old = NegotiationCycle.objects.filter(started_at__range=(over - timedelta(hours=1), over))
    old.exclude(left_over=[]).update(left_over=[])


class _PhaseTimer:
    """Durations of consecutive phases."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = clock()

    def lap(self) -> float:
        """Seconds since the last call."""
        last, self._last = self._last, self._clock()
        return self._last - last


def _adjust_throttles(now: datetime) -> None:
    """Throttle the sites with many failures in the last period, relax the others."""
    since = throttling.throttle_due(now)
    if since is not None:
        until = since + throttling.PERIOD
        throttling.adjust_throttles(site_outcomes(since, until), now=now)


def read_offers(now: datetime) -> list[Offer]:
    """Offers of all sites with an ad that has not expired; closed ones with the reason."""
    standing = standings(now)
    offers = []
    for published in read_ads(now):
        site = standing.get(published.site_id)
        if site is None:
            # Created between the two queries: the next cycle knows it.
            continue
        offers.append(
            Offer(
                site_id=published.site_id,
                name=published.name,
                ad=published.ad,
                closed=site.reason if site.kind else "",
                allowance=site.allowance,
                group_size=published.group_size,
            )
        )
    return sorted(offers, key=lambda offer: offer.name)


def _report(cycle: NegotiationCycle) -> dict[str, Any]:
    return {
        "ads": cycle.ads,
        "requests": cycle.requests,
        "autoclusters": cycle.autoclusters,
        "matches": cycle.matches,
        "bound": cycle.bound,
        "unmatched": sum(cycle.reasons.values()),
    }

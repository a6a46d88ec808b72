"""The negotiator's cycle: publish the sites' ads, read who wants what, decide, carry out."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from matching.cycle_sites import Offer
from matching.negotiation import Bounds, Decision, Request, decide
from wms.accounting.services import charge
from wms.dags.models import NegotiationCycle
from wms.dags.negotiation import requests as demand
from wms.dags.negotiation.binding import carry_out
from wms.dags.negotiation.site_performance import site_outcomes
from wms.dags.services.policies import matchmaking_policy
from wms.sites import throttling
from wms.sites.ads import publish_ads, read_ads
from wms.sites.standing import standings

#: What one cycle may take; DAGs that it had no time to look at come first in the next one.
DECISION_S = 20.0
#: What looking at all sites for one kind of request may take; whose ad takes longer is held.
REQUEST_S = 2.0
#: So long the records of cycles are kept.
RECORDS_KEPT = timedelta(days=30)
#: So long a record tells which DAGs were left over, and why, in full.
DETAILS_KEPT = timedelta(days=1)
_REASONS_KEPT = 10
_DAGS_NAMED = 5
_LONGEST_REASON = 300


def run_cycle(now: datetime) -> dict[str, Any]:
    """One cycle; what it did and how long its phases took is stored as a `NegotiationCycle`."""
    watch = _Phases(time.monotonic)
    _judge_sites(now)
    ads = publish_ads(demand.loads_by_site(), now=now)
    publish_s = watch.lap()
    charge(demand.used_slots(), half_life_s=matchmaking_policy().priority_half_life_s, now=now)
    offers, requests = read_offers(now), demand.idle_requests()
    usage, limits = demand.usage(offers), demand.concurrency_limits(requests)
    read_s = watch.lap()
    bounds = Bounds(time.monotonic, request_s=REQUEST_S, decision_s=DECISION_S)
    decision = decide(requests, offers, usage, limits, now, bounds=bounds)
    decide_s = watch.lap()
    bound = carry_out(decision, offers, now=now)
    cycle = NegotiationCycle.objects.create(
        started_at=now,
        publish_s=publish_s,
        read_s=read_s,
        decide_s=decide_s,
        carry_out_s=watch.lap(),
        ads=ads,
        requests=len(requests),
        autoclusters=decision.autoclusters,
        matches=len(decision.matches),
        bound=bound,
        reasons=dict(Counter(left.kind.value for left in decision.unmatched.values())),
        left_over=_left_over(decision),
    )
    _forget(now)
    return _report(cycle, requests)


def _left_over(decision: Decision) -> list[dict[str, Any]]:
    """The most frequent reasons, with how many DAGs they are for, and some of these."""
    ids: dict[str, list[int]] = defaultdict(list)
    for dag_id, left in decision.unmatched.items():
        ids[left.text[:_LONGEST_REASON]].append(dag_id)
    most = sorted(ids, key=lambda reason: -len(ids[reason]))[:_REASONS_KEPT]
    return [
        {"reason": reason, "count": len(ids[reason]), "dags": ids[reason][:_DAGS_NAMED]}
        for reason in most
    ]


def _forget(now: datetime) -> None:
    """Remove old records, and what those of a day ago tell in full.

    Looks at a few rows only: what a negotiator that did not run has missed goes with its record.
    """
    NegotiationCycle.objects.filter(started_at__lt=now - RECORDS_KEPT).delete()
    over = now - DETAILS_KEPT
    old = NegotiationCycle.objects.filter(started_at__range=(over - timedelta(hours=1), over))
    old.exclude(left_over=[]).update(left_over=[])


class _Phases:
    """Measures one phase after another."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = clock()

    def lap(self) -> float:
        """The seconds since the last call."""
        last, self._last = self._last, self._clock()
        return self._last - last


def _judge_sites(now: datetime) -> None:
    """Throttle the sites that failed too much in the period that has ended, relax the others."""
    since = throttling.throttle_due(now)
    if since is not None:
        until = since + throttling.PERIOD
        throttling.adjust_throttles(site_outcomes(since, until), now=now)


def read_offers(now: datetime) -> list[Offer]:
    """All sites with an ad that has not expired; those that take no DAG now say why."""
    standing = standings(now)
    offers = []
    for published in read_ads(now):
        site = standing.get(published.site_id)
        if site is None:
            # It was made between the two queries: the next cycle knows it.
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


def _report(cycle: NegotiationCycle, requests: Sequence[Request]) -> dict[str, Any]:
    return {
        "ads": cycle.ads,
        "requests": len(requests),
        "autoclusters": cycle.autoclusters,
        "matches": cycle.matches,
        "bound": cycle.bound,
        "unmatched": sum(cycle.reasons.values()),
    }

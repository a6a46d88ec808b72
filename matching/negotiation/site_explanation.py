"""Explanation which idle DAGs a site takes now, and how the others stand with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from matching.ads.classads import AdError
from matching.negotiation.autoclusters import Cluster, Grouping
from matching.negotiation.candidates import SitePool
from matching.negotiation.cycle_sites import Offer
from matching.negotiation.deadline import Deadline
from matching.negotiation.decision import Bounds, Request
from matching.negotiation.explanation import ConjunctCount, Pair, count_conjuncts
from matching.negotiation.unmatched_reasons import SiteStanding, standing_of


@dataclass(frozen=True, slots=True)
class SiteExplanation:
    """Standing of a site and the idle DAGs with each other; all numbers count DAGs.

    `unseen` counts the DAGs that were not examined before the deadline.
    """

    dags: int
    stands: Mapping[SiteStanding, int]
    conjuncts: tuple[ConjunctCount, ...]
    unseen: int = 0


def explain_site(
    offer: Offer, requests: Sequence[Request], now: datetime, *, bounds: Bounds | None = None
) -> SiteExplanation:
    """Numbers of requests by how they stand with a site: taken now, or why not.

    A DAG whose ad cannot be built is left out.
    """
    bounds = bounds or Bounds()
    deadline = Deadline(bounds.stopwatch, bounds.decision_s)
    site_pool = SitePool([offer])
    (cycle_site,) = site_pool.sites
    grouping = Grouping(site_pool.looked_up)
    members: dict[int, list[Request]] = {}
    for request in requests:
        members.setdefault(grouping.number(request.request_ad(now)), []).append(request)
    stands: dict[SiteStanding, int] = {}
    pairs: list[Pair] = []
    unseen = 0
    for alike in members.values():
        if deadline.is_over:
            unseen += len(alike)
            continue
        try:
            cluster = Cluster(alike[0].request_ad(now))
        except AdError:
            continue
        (fit,) = site_pool.assess(cluster)
        standing = standing_of(cycle_site, fit, cluster.avoided)
        stands[standing] = stands.get(standing, 0) + len(alike)
        pairs.append(Pair(cycle_site.ad, cluster.ad, len(alike)))
    return SiteExplanation(
        dags=sum(stands.values()),
        stands=stands,
        conjuncts=count_conjuncts(cycle_site.conjuncts(), pairs, deadline),
        unseen=unseen,
    )

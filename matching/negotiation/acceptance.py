"""Sites that accept a DAG whose jobs are bound at the claim, and why other sites do not.

Also the answer of each site, with its reason, and the node that can run at none of them. Both
sides' Requirements count, with all sites. Such a DAG takes no place of a site, so sites are asked
as if nothing were bound to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import classad2

from matching.ads.classads import AdError, evaluate
from matching.ads.conjuncts import Conjunct
from matching.negotiation.autoclusters import Cluster, Grouping, RequestAd
from matching.negotiation.candidates import SitePool, TooExpensive
from matching.negotiation.cycle_sites import CycleSite, Offer
from matching.negotiation.deadline import Deadline
from matching.negotiation.decision import NO_TIME, Bounds, Request
from matching.negotiation.unmatched_reasons import (
    Kind,
    Leftover,
    SiteStanding,
    no_site_reason,
    standing_of,
)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Ids of the sites that accept a DAG; `leftover` tells why there is none, or none is known."""

    site_ids: frozenset[int] = frozenset()
    leftover: Leftover | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether the sites could not be asked: there was no time, or the ad is at fault."""
        return self.leftover is not None and self.leftover.kind in {Kind.UNSEEN, Kind.FAULT}


def accept(
    requests: Sequence[Request],
    offers: Iterable[Offer],
    now: datetime,
    *,
    bounds: Bounds | None = None,
) -> dict[int, Acceptance]:
    """Acceptance of each request by its DAG's id.

    A site accepts where the `Requirements` of both ads are true, the site's `CurMatches` being 0,
    and it is neither closed nor avoided. Ranks do not matter, nor whether all nodes of a DAG that
    is bound singly can run there: see `homeless_node`. Requests that no site can tell apart are
    evaluated once. Those for which no time is left are not known.
    """
    bounds = bounds or Bounds()
    deadline = Deadline(bounds.stopwatch, bounds.decision_s)
    site_pool = SitePool(
        without_places(offers), stopwatch=bounds.stopwatch, request_limit_s=bounds.request_s
    )
    grouping = Grouping(site_pool.looked_up)
    known: dict[int, Acceptance] = {}
    accepted: dict[int, Acceptance] = {}
    for request in requests:
        request_ad = request.request_ad(now)
        number = grouping.number(request_ad)
        if number not in known:
            if deadline.is_over:
                accepted[request.dag_id] = Acceptance(leftover=NO_TIME)
                continue
            known[number] = _acceptance(request_ad, site_pool)
        accepted[request.dag_id] = known[number]
    return accepted


def _acceptance(request_ad: RequestAd, site_pool: SitePool) -> Acceptance:
    try:
        cluster = Cluster(request_ad)
        fits = site_pool.assess(cluster)
    except AdError as error:
        return Acceptance(leftover=Leftover(Kind.FAULT, f"its ad cannot be made: {error}"))
    except TooExpensive:
        return Acceptance(
            leftover=Leftover(Kind.FAULT, "its Requirements take too long to evaluate")
        )
    sites = frozenset(
        site.offer.site_id
        for site, fit in zip(site_pool.sites, fits, strict=True)
        if standing_of(site, fit, cluster.avoided) is SiteStanding.FREE
    )
    if sites:
        return Acceptance(sites)
    return Acceptance(leftover=no_site_reason(site_pool, fits, cluster))


def homeless_node(request: Request, site_ids: frozenset[int]) -> Leftover | None:
    """Why a node of the request can run at none of these sites; None if each can run at one."""
    unmet = request.node_fit.unmet_at_all(site_ids) if request.node_fit is not None else None
    if unmet is None:
        return None
    text = f"Node {request.nodes[unmet.place]} can run at none of the sites that accept it"
    return Leftover(Kind.NODES, f"{text}: {unmet.text}.")


def without_places(offers: Iterable[Offer]) -> list[Offer]:
    """Offers of sites to which nothing is bound."""
    return [replace(offer, ad=_emptied(offer.ad)) for offer in offers]


def _emptied(ad: classad2.ClassAd) -> classad2.ClassAd:
    empty = classad2.ClassAd(repr(ad))
    empty["CurMatches"] = 0
    return empty


@dataclass(frozen=True, slots=True)
class SiteAnswer:
    """Whether a site accepts a DAG now, and why not; empty where it does."""

    site: str
    accepts: bool
    reason: str = ""


def answers_of_sites(
    request: Request, offers: Iterable[Offer], now: datetime, *, bounds: Bounds | None = None
) -> tuple[SiteAnswer, ...]:
    """Answer of each site to a request, by the same tests as `accept`; none for a faulty ad."""
    bounds = bounds or Bounds()
    site_pool = SitePool(
        without_places(offers), stopwatch=bounds.stopwatch, request_limit_s=bounds.request_s
    )
    try:
        cluster = Cluster(request.request_ad(now))
        fits = site_pool.assess(cluster)
    except (AdError, TooExpensive):
        return ()
    return tuple(
        _site_answer(site, standing_of(site, fit, cluster.avoided), cluster, request)
        for site, fit in zip(site_pool.sites, fits, strict=True)
    )


def _site_answer(
    site: CycleSite, standing: SiteStanding, cluster: Cluster, request: Request
) -> SiteAnswer:
    if standing is SiteStanding.FREE:
        return SiteAnswer(site.offer.name, accepts=True)
    reason = standing.value
    if standing is SiteStanding.CLOSED:
        reason = site.offer.closed
    elif standing is SiteStanding.AVOIDED:
        reason = request.left_because.get(site.offer.site_id, "") or reason
    elif standing is SiteStanding.REFUSED_BY_DAG:
        text = _untrue(cluster.conjuncts(), cluster.ad, site.ad)
        reason = f"the DAG's Requirements are not true there: {text}"
    elif standing in {SiteStanding.REFUSED_BY_SITE, SiteStanding.FULL}:
        text = _untrue(site.conjuncts(), site.ad, cluster.ad)
        reason = f"the site's Requirements are not true: {text}"
    return SiteAnswer(site.offer.name, accepts=False, reason=reason)


def _untrue(conjuncts: Iterable[Conjunct], ad: classad2.ClassAd, target: classad2.ClassAd) -> str:
    """The first conjunct that is not true."""
    found = (each for each in conjuncts if evaluate(each.expression, ad, target) is not True)
    return next((each.text for each in found), "as a whole")

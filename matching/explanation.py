"""Why a request matches or not: found by the code that decides, told in full."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

import classad2
from classad2 import Value

from matching.classads import AdError, evaluate
from matching.clusters import Cluster, Grouping
from matching.conjuncts import Conjunct
from matching.expressions import references
from matching.market import Fit, Market, TooExpensive
from matching.negotiation import Bounds, Cycle, Limit, Request, Usage
from matching.patience import Patience
from matching.places import Offer, Place
from matching.reasons import Stand, stand_of

_CLOSE_ENOUGH = 0.6


class Verdict(StrEnum):
    """The answer in a word."""

    WOULD_MATCH = "would match now"
    NEVER = "never"
    NOT_NOW = "not now"
    NOT_ALLOWED = "not allowed"
    WAITING = "waiting its turn"
    NOT_LOOKED_AT = "not looked at yet"
    BOUND = "has a site"
    ENDED = "has ended"


@dataclass(frozen=True, slots=True)
class ConjunctCount:
    """One conjunct: how many pass it alone, and how many it and all before it.

    Of those that do not pass, for so many it is undefined, an error, or no truth value at all.
    """

    text: str
    alone: int
    together: int
    undefined: int = 0
    error: int = 0
    no_truth: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A conjunct of sites' own Requirements, and the sites that refuse the request by it.

    `otherwise_fitting` counts those among them that the request's Requirements accept.
    """

    text: str
    sites: tuple[str, ...]
    otherwise_fitting: int


@dataclass(frozen=True, slots=True)
class UndefinedName:
    """An attribute that an expression refers to and nobody defines; what may have been meant."""

    name: str
    used_in: str
    suggestion: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A site that would take the request now, and how both think of each other."""

    site: str
    dag_rank: float
    site_rank: float
    load: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a request and all sites stand to each other at this moment.

    `willing` counts the sites where both sides' requirements hold, whatever they have to do now.
    `candidates` are those that would take it now, best first; `stands` are names by standing. With
    `is_cut` there was no time to count all conjuncts and refusals.
    """

    verdict: Verdict
    summary: str
    sites: int
    willing: int
    conjuncts: tuple[ConjunctCount, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    undefined: tuple[UndefinedName, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    stands: Mapping[Stand, tuple[str, ...]] | None = None
    is_cut: bool = False

    @property
    def would_match(self) -> bool:
        """True when the negotiator, given this request alone, would match it."""
        return self.verdict is Verdict.WOULD_MATCH


def explain(
    request: Request,
    offers: Iterable[Offer],
    usage: Usage,
    limits: Mapping[str, Limit],
    now: datetime,
    *,
    bounds: Bounds | None = None,
) -> Explanation:
    """Why the request would be matched now if it were alone, or why not.

    Takes what `decide` takes. A request that would match alone may still have to wait for others.
    """
    bounds = bounds or Bounds()
    cycle = Cycle([request], offers, usage, limits, now, bounds)
    places = cycle.market.places
    try:
        cluster = Cluster(request.wish(now))
    except AdError as error:
        return Explanation(Verdict.NEVER, f"Its ad cannot be made: {error}.", len(places), 0)
    try:
        fits = cycle.market.search(cluster).fits
    except TooExpensive:
        text = "Its Requirements and Rank take too long to evaluate."
        return Explanation(Verdict.NEVER, text, len(places), 0)
    stands = _stands(places, fits, cluster)
    obstacle = cycle.obstacle(request)
    verdict = _verdict(stands, is_held_up=obstacle is not None)
    if obstacle is not None and _is_out_of_reach(request, limits):
        verdict = Verdict.NOT_ALLOWED
    candidates = _candidates(cluster, stands.get(Stand.FREE, ()))
    willing = sum(fit is Fit.WILLING for fit in fits)
    summary = obstacle.text if obstacle is not None else _summary(verdict, candidates, stands)
    patience = Patience(bounds.stopwatch, bounds.decision_s)
    conjuncts = cluster.conjuncts()
    counts = count_conjuncts(conjuncts, [Pair(cluster.ad, p.ad) for p in places], patience)
    return Explanation(
        verdict=verdict,
        summary=summary,
        sites=len(places),
        willing=willing,
        conjuncts=counts,
        refusals=_refusals(cluster, places, fits, patience),
        undefined=_undefined(cluster, places),
        candidates=candidates,
        stands={stand: tuple(p.offer.name for p in found) for stand, found in stands.items()},
        is_cut=patience.is_over or len(counts) < len(conjuncts),
    )


def _stands(
    places: Sequence[Place], fits: Sequence[Fit], cluster: Cluster
) -> dict[Stand, list[Place]]:
    stands: dict[Stand, list[Place]] = {}
    for place, fit in zip(places, fits, strict=True):
        stands.setdefault(stand_of(place, fit, cluster.avoided), []).append(place)
    return stands


def _verdict(stands: Mapping[Stand, object], *, is_held_up: bool) -> Verdict:
    if Stand.FREE in stands:
        return Verdict.WAITING if is_held_up else Verdict.WOULD_MATCH
    hopeless = {Stand.REFUSED_BY_DAG, Stand.REFUSED_BY_SITE}
    return Verdict.NEVER if hopeless.issuperset(stands) else Verdict.NOT_NOW


def _is_out_of_reach(request: Request, limits: Mapping[str, Limit]) -> bool:
    """True when a limit is smaller than what the request takes, even if nobody else has any."""
    return any(name in limits and amount > limits[name].maximum
               for name, amount in request.limits.items())  # fmt: skip


def _summary(
    verdict: Verdict, candidates: Sequence[Candidate], stands: Mapping[Stand, Sequence[Place]]
) -> str:
    if verdict is Verdict.WOULD_MATCH:
        return f"It would go to {candidates[0].site}, the best of {_sites(len(candidates))}."
    if not stands:
        return "No site has published an ad."
    counts = [f"{_sites(len(found))} {stand.value}" for stand, found in sorted(stands.items())]
    return f"{'; '.join(counts)}."


def _sites(count: int) -> str:
    return "1 site" if count == 1 else f"{count} sites"


def _candidates(cluster: Cluster, free: Sequence[Place]) -> tuple[Candidate, ...]:
    found = [
        Candidate(
            site=place.offer.name,
            dag_rank=cluster.rank(place.ad),
            site_rank=place.view(cluster)[1],
            load=place.load,
        )
        for place in free
    ]
    return tuple(sorted(found, key=lambda c: (-c.dag_rank, -c.site_rank, c.load, c.site)))


@dataclass(frozen=True, slots=True)
class Pair:
    """An ad as it is seen towards another one, standing for `count` equal pairs."""

    ad: classad2.ClassAd
    target: classad2.ClassAd
    count: int = 1


def count_conjuncts(
    conjuncts: Sequence[Conjunct], pairs: Sequence[Pair], patience: Patience
) -> tuple[ConjunctCount, ...]:
    """How many pairs pass each conjunct alone, and it together with all before it.

    Alone a conjunct can take much longer than behind others that are false: the one at which the
    patience ends is left out, with all that come after.
    """
    passing = [True] * len(pairs)
    counts: list[ConjunctCount] = []
    for conjunct in conjuncts:
        values = []
        for pair in pairs:
            if patience.is_over:
                return tuple(counts)
            values.append(evaluate(conjunct.expression, pair.ad, pair.target))
        passing = [so_far and value is True for so_far, value in zip(passing, values, strict=True)]
        counts.append(
            ConjunctCount(
                text=conjunct.text,
                alone=_number(pairs, [value is True for value in values]),
                together=_number(pairs, passing),
                undefined=_number(pairs, [value is Value.Undefined for value in values]),
                error=_number(pairs, [value is Value.Error for value in values]),
                no_truth=_number(pairs, [not isinstance(value, bool | Value) for value in values]),
            )
        )
    return tuple(counts)


def _number(pairs: Sequence[Pair], are_counted: Sequence[bool]) -> int:
    return sum(
        pair.count for pair, is_counted in zip(pairs, are_counted, strict=True) if is_counted
    )


def _refusals(
    cluster: Cluster, places: Sequence[Place], fits: Sequence[Fit], patience: Patience
) -> tuple[Refusal, ...]:
    refusing: dict[str, list[tuple[str, bool]]] = {}
    for place, fit in zip(places, fits, strict=True):
        if patience.is_over:
            break
        for conjunct in place.conjuncts():
            if evaluate(conjunct.expression, place.ad, cluster.ad) is not True:
                told = (place.offer.name, fit is not Fit.REFUSED_BY_DAG)
                refusing.setdefault(conjunct.text, []).append(told)
    found = [
        Refusal(text, tuple(name for name, _ in sites), sum(fitting for _, fitting in sites))
        for text, sites in refusing.items()
    ]
    return tuple(sorted(found, key=lambda refusal: (-len(refusal.sites), refusal.text)))


def _undefined(cluster: Cluster, places: Sequence[Place]) -> tuple[UndefinedName, ...]:
    """Names in the request's Requirements and Rank that neither it nor any site defines."""
    spelled = {
        name.lower(): name for ad in [cluster.ad, *(place.ad for place in places)] for name in ad
    }
    at_sites = frozenset[str]().union(*(place.definitions.keys() for place in places))
    found = []
    for used_in in ("Requirements", "Rank"):
        for reference in dict.fromkeys(references(cluster.definitions.get(used_in.lower(), ""))):
            own = reference.name in cluster.definitions and reference.scope != "target"
            if own or (reference.name in at_sites and reference.scope != "my"):
                continue
            close = difflib.get_close_matches(reference.name, spelled, 1, _CLOSE_ENOUGH)
            suggestion = spelled[close[0]] if close else ""
            found.append(UndefinedName(reference.name, used_in, suggestion))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class SiteExplanation:
    """How a site and the DAGs that want one stand to each other; all numbers count DAGs.

    `unseen` are those that there was no time for.
    """

    dags: int
    stands: Mapping[Stand, int]
    conjuncts: tuple[ConjunctCount, ...]
    unseen: int = 0


def explain_site(
    offer: Offer, requests: Sequence[Request], now: datetime, *, bounds: Bounds | None = None
) -> SiteExplanation:
    """Which of the requests a site would take now, and why not the others.

    A DAG whose ad cannot be made is left out.
    """
    bounds = bounds or Bounds()
    patience = Patience(bounds.stopwatch, bounds.decision_s)
    market = Market([offer])
    (place,) = market.places
    grouping = Grouping(market.asked)
    members: dict[int, list[Request]] = {}
    for request in requests:
        members.setdefault(grouping.number(request.wish(now)), []).append(request)
    stands: dict[Stand, int] = {}
    pairs: list[Pair] = []
    unseen = 0
    for alike in members.values():
        if patience.is_over:
            unseen += len(alike)
            continue
        try:
            cluster = Cluster(alike[0].wish(now))
        except AdError:
            continue
        (fit,) = market.assess(cluster)
        stand = stand_of(place, fit, cluster.avoided)
        stands[stand] = stands.get(stand, 0) + len(alike)
        pairs.append(Pair(place.ad, cluster.ad, len(alike)))
    return SiteExplanation(
        dags=sum(stands.values()),
        stands=stands,
        conjuncts=count_conjuncts(place.conjuncts(), pairs, patience),
        unseen=unseen,
    )


def with_changes(request: Request, changes: Mapping[str, str]) -> Request:
    """The request with some attributes changed; an empty expression takes one away."""
    changed = {name.lower() for name in changes}
    kept = {n: text for n, text in request.expressions.items() if n.lower() not in changed}
    values = {n: value for n, value in request.values.items() if n.lower() not in changed}
    given = {name: text for name, text in changes.items() if text.strip()}
    return replace(request, expressions={**kept, **given}, values=values)

"""Explanation why a request matches or does not match its sites.

Verdicts, counts by conjunct, refusals, unmet needs of nodes, undefined attributes and candidates,
found with the negotiator's own code. Also requests with changed attributes, for what-if.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

import classad2
from classad2 import Value

from matching.ads.classads import AdError, evaluate
from matching.ads.conjuncts import Conjunct
from matching.ads.expressions import nested_names, references
from matching.negotiation.acceptance import homeless_node
from matching.negotiation.autoclusters import Cluster
from matching.negotiation.candidates import Fit, TooExpensive
from matching.negotiation.concurrency_limits import Limit
from matching.negotiation.cycle_sites import CycleSite, Offer
from matching.negotiation.deadline import Deadline
from matching.negotiation.decision import Bounds, Cycle, Request, Usage
from matching.negotiation.unmatched_reasons import SiteStanding, standing_of

_CLOSE_ENOUGH = 0.6


class MatchVerdict(StrEnum):
    """Answer to "does it match?" in one phrase."""

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
    """Numbers of ads that pass one conjunct alone, and together with all conjuncts before it.

    `undefined`, `error` and `no_truth` count the ads for which the conjunct has no boolean value.
    """

    text: str
    alone: int
    together: int
    undefined: int = 0
    error: int = 0
    no_truth: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """One conjunct of sites' own Requirements, and the sites that refuse the request by it.

    `otherwise_fitting` counts those of them that the request's Requirements accept.
    """

    text: str
    sites: tuple[str, ...]
    otherwise_fitting: int


@dataclass(frozen=True, slots=True)
class UnmetNeed:
    """Need of a node that no queue of some sites meets, which would take the request otherwise.

    `code` is a NeedCode; `text` has what is needed and the largest amount there, with the unit.
    """

    node: str
    code: str
    text: str
    sites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UndefinedName:
    """Attribute that an expression uses and no ad defines, with a similar defined name."""

    name: str
    used_in: str
    suggestion: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """Site that would take the request now, with the ranks of both sides and its load.

    `input_tenths` of the input data are near it, where the request prefers such sites.
    """

    site: str
    dag_rank: float
    site_rank: float
    load: float
    input_tenths: int = 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a request would match now, and how it stands with each site.

    `willing` counts the sites where the Requirements of both sides are true and each node can run,
    even if the site is full or closed. `candidates` would take the request now, best first;
    `stands` has site names by standing. With `is_cut` there was no time to count all conjuncts and
    refusals.
    """

    verdict: MatchVerdict
    summary: str
    sites: int
    willing: int
    conjuncts: tuple[ConjunctCount, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    unmet: tuple[UnmetNeed, ...] = ()
    undefined: tuple[UndefinedName, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    stands: Mapping[SiteStanding, tuple[str, ...]] | None = None
    is_cut: bool = False

    @property
    def would_match(self) -> bool:
        """Whether the negotiator would match this request if it were the only one."""
        return self.verdict is MatchVerdict.WOULD_MATCH


def explain(
    request: Request,
    offers: Iterable[Offer],
    usage: Usage,
    limits: Mapping[str, Limit],
    now: datetime,
    *,
    bounds: Bounds | None = None,
) -> Explanation:
    """Why the request would match now if it were the only one, or why not.

    Takes the arguments of `decide`. A request that would match alone may still wait for others.
    """
    bounds = bounds or Bounds()
    cycle = Cycle([request], offers, usage, limits, now, bounds)
    cycle_sites = cycle.site_pool.sites
    try:
        cluster = Cluster(request.request_ad(now))
    except AdError as error:
        return Explanation(
            MatchVerdict.NEVER, f"Its ad cannot be made: {error}.", len(cycle_sites), 0
        )
    try:
        fits = cycle.site_pool.search(cluster).fits
    except TooExpensive:
        text = "Its Requirements and Rank take too long to evaluate."
        return Explanation(MatchVerdict.NEVER, text, len(cycle_sites), 0)
    stands = _sites_by_standing(cycle_sites, fits, cluster)
    names = cycle.site_pool.names
    free = frozenset(each.offer.site_id for each in stands.get(SiteStanding.FREE, ()))
    homeless = homeless_node(request, free) if request.bound_singly else None
    obstacle = homeless or cycle.obstacle(request)
    verdict = _verdict(stands, is_held_up=obstacle is not None)
    if homeless is not None:
        verdict = MatchVerdict.NOT_NOW
    elif obstacle is not None and _is_out_of_reach(request, limits):
        verdict = MatchVerdict.NOT_ALLOWED
    candidates = _candidates(cluster, stands.get(SiteStanding.FREE, ()))
    willing = sum(fit is Fit.WILLING for fit in fits)
    unfit = frozenset(each.offer.site_id for each in stands.get(SiteStanding.UNFIT_FOR_NODES, ()))
    summary = obstacle.text if obstacle is not None else _summary(verdict, candidates, stands)
    if verdict is not MatchVerdict.WOULD_MATCH:
        summary = f"{summary} {request.unmet_needs(unfit, names)}".rstrip()
    if verdict is MatchVerdict.NEVER:
        summary = f"{summary} {cycle.site_pool.wishes.sentence(cluster)}".rstrip()
    deadline = Deadline(bounds.stopwatch, bounds.decision_s)
    conjuncts = cluster.conjuncts()
    counts = count_conjuncts(conjuncts, [Pair(cluster.ad, p.ad) for p in cycle_sites], deadline)
    return Explanation(
        verdict=verdict,
        summary=summary,
        sites=len(cycle_sites),
        willing=willing,
        conjuncts=counts,
        refusals=_refusals(cluster, cycle_sites, fits, deadline),
        unmet=_unmet(request, unfit, names),
        undefined=_undefined(cluster, cycle_sites),
        candidates=candidates,
        stands={standing: tuple(p.offer.name for p in found) for standing, found in stands.items()},
        is_cut=deadline.is_over or len(counts) < len(conjuncts),
    )


def _sites_by_standing(
    cycle_sites: Sequence[CycleSite], fits: Sequence[Fit], cluster: Cluster
) -> dict[SiteStanding, list[CycleSite]]:
    stands: dict[SiteStanding, list[CycleSite]] = {}
    for cycle_site, fit in zip(cycle_sites, fits, strict=True):
        stands.setdefault(standing_of(cycle_site, fit, cluster.avoided), []).append(cycle_site)
    return stands


def _verdict(stands: Mapping[SiteStanding, object], *, is_held_up: bool) -> MatchVerdict:
    if SiteStanding.FREE in stands:
        return MatchVerdict.WAITING if is_held_up else MatchVerdict.WOULD_MATCH
    hopeless = {
        SiteStanding.REFUSED_BY_DAG,
        SiteStanding.REFUSED_BY_SITE,
        SiteStanding.UNFIT_FOR_NODES,
    }
    return MatchVerdict.NEVER if hopeless.issuperset(stands) else MatchVerdict.NOT_NOW


def _is_out_of_reach(request: Request, limits: Mapping[str, Limit]) -> bool:
    """Whether a limit is smaller than what the request takes, even if nobody uses it."""
    return any(name in limits and amount > limits[name].maximum
               for name, amount in request.limits.items())  # fmt: skip


def _summary(
    verdict: MatchVerdict,
    candidates: Sequence[Candidate],
    stands: Mapping[SiteStanding, Sequence[CycleSite]],
) -> str:
    if verdict is MatchVerdict.WOULD_MATCH:
        return f"It would go to {candidates[0].site}, the best of {_sites(len(candidates))}."
    if not stands:
        return "No site has published an ad."
    counts = [
        f"{_sites(len(found))} {standing.value}" for standing, found in sorted(stands.items())
    ]
    return f"{'; '.join(counts)}."


def _sites(count: int) -> str:
    return "1 site" if count == 1 else f"{count} sites"


def _candidates(cluster: Cluster, free: Sequence[CycleSite]) -> tuple[Candidate, ...]:
    found = [
        Candidate(
            site=cycle_site.offer.name,
            dag_rank=cluster.rank(cycle_site.ad),
            site_rank=cycle_site.view(cluster)[1],
            load=cycle_site.load,
            input_tenths=cluster.tenths_near(cycle_site.offer.site_id),
        )
        for cycle_site in free
    ]
    return tuple(sorted(found, key=_order))


def _order(candidate: Candidate) -> tuple[float, int, float, float, str]:
    """Order of candidates, as the negotiator has it."""
    near, load = candidate.input_tenths, candidate.load
    return -candidate.dag_rank, -near, -candidate.site_rank, load, candidate.site


@dataclass(frozen=True, slots=True)
class Pair:
    """An ad and its TARGET ad, counted `count` times."""

    ad: classad2.ClassAd
    target: classad2.ClassAd
    count: int = 1


def count_conjuncts(
    conjuncts: Sequence[Conjunct], pairs: Sequence[Pair], deadline: Deadline
) -> tuple[ConjunctCount, ...]:
    """Number of pairs that pass each conjunct alone, and together with all conjuncts before it.

    Evaluating a conjunct alone can take much longer than behind others that are false: the one at
    which the deadline passes is left out, with all that follow.
    """
    passing = [True] * len(pairs)
    counts: list[ConjunctCount] = []
    for conjunct in conjuncts:
        values = []
        for pair in pairs:
            if deadline.is_over:
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
    cluster: Cluster, cycle_sites: Sequence[CycleSite], fits: Sequence[Fit], deadline: Deadline
) -> tuple[Refusal, ...]:
    refusing: dict[str, list[tuple[str, bool]]] = {}
    for cycle_site, fit in zip(cycle_sites, fits, strict=True):
        if deadline.is_over:
            break
        for conjunct in cycle_site.conjuncts():
            if evaluate(conjunct.expression, cycle_site.ad, cluster.ad) is not True:
                refusal = (cycle_site.offer.name, fit is not Fit.REFUSED_BY_DAG)
                refusing.setdefault(conjunct.text, []).append(refusal)
    found = [
        Refusal(text, tuple(name for name, _ in sites), sum(fitting for _, fitting in sites))
        for text, sites in refusing.items()
    ]
    return tuple(sorted(found, key=lambda refusal: (-len(refusal.sites), refusal.text)))


def _unmet(
    request: Request, unfit: frozenset[int], names: Mapping[int, str]
) -> tuple[UnmetNeed, ...]:
    """Unmet needs of nodes, those of the most sites first."""
    if request.node_fit is None:
        return ()
    groups = request.node_fit.by_need(unfit)
    return tuple(
        UnmetNeed(
            request.nodes[need.place],
            need.code.value,
            need.text,
            tuple(sorted(names[site_id] for site_id in site_ids)),
        )
        for need, site_ids in groups.items()
    )


def _undefined(cluster: Cluster, cycle_sites: Sequence[CycleSite]) -> tuple[UndefinedName, ...]:
    """Names in the request's Requirements and Rank that neither it nor any site defines."""
    spelled = {
        name.lower(): name
        for ad in [cluster.ad, *(cycle_site.ad for cycle_site in cycle_sites)]
        for name in ad
    }
    texts = {text for each in cycle_sites for text in each.definitions.values() if "[" in text}
    at_sites = frozenset[str]().union(
        *(cycle_site.definitions.keys() for cycle_site in cycle_sites),
        # An expression may count the queues for which it is true.
        *map(nested_names, texts),
    )
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


def with_changes(request: Request, changes: Mapping[str, str]) -> Request:
    """Copy of the request with some attributes changed; an empty expression removes one."""
    changed = {name.lower() for name in changes}
    kept = {n: text for n, text in request.expressions.items() if n.lower() not in changed}
    values = {n: value for n, value in request.values.items() if n.lower() not in changed}
    given = {name: text for name, text in changes.items() if text.strip()}
    return replace(request, expressions={**kept, **given}, values=values)

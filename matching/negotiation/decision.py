"""Negotiation cycle: which idle DAG is matched to which site, and why others stay unmatched.

Holds its input (requests, usage, concurrency limits, time limits) and its result. Requirements and
Rank of both sides count, as in Condor's matchmaking. Who is served first follows from priorities,
groups and limits ("spinning the pie"), as in HTCondor's negotiator.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from matching.ads.classads import AdError
from matching.negotiation.autoclusters import Cluster, Grouping, RequestAd
from matching.negotiation.candidates import CandidateHeap, SitePool, Stopwatch, TooExpensive
from matching.negotiation.concurrency_limits import Limit, LimitsInUse
from matching.negotiation.cycle_sites import CycleSite, Offer
from matching.negotiation.fairshare import (
    GroupShare,
    allotments,
    effective_quotas,
    shares,
    starvation_order,
)
from matching.negotiation.node_fit import NodeFit, unmet_sentences
from matching.negotiation.unmatched_reasons import (
    Kind,
    Leftover,
    no_site_reason,
    reasons_for_leaving,
)

#: Quotas are shared out anew so many times, with what the groups before did not use.
_ALLOTMENT_ROUNDS = 3
NO_TIME = Leftover(Kind.UNSEEN, "The negotiation had no time left to look at it.")
#: The effective priority of who has never used anything: HTCondor's floor times its factor.
NEWCOMER_PRIORITY = 500.0


@dataclass(frozen=True, slots=True)
class Request:
    """An idle DAG that waits for a site.

    `expressions` and `values` make its ad; values win. `unfinished_nodes` is its weight where sites
    count jobs. `limits` are the amounts that it takes of concurrency limits. `avoided` has, by site
    id, until when it does not go there, `left_because` why it left. `node_fit` tells where its
    nodes can run, `nodes` names one for each of their needs; where its jobs are `bound_singly`,
    they need not all run at one site. `inputs` tells where its input data are, `nearness` how many
    tenths of them are near sites, where they only make it prefer some.
    """

    dag_id: int
    expressions: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict)
    submitter: str = ""
    group: str = ""
    unfinished_nodes: int = 1
    limits: Mapping[str, float] = field(default_factory=dict)
    avoided: Mapping[int, datetime] = field(default_factory=dict)
    left_because: Mapping[int, str] = field(default_factory=dict)
    node_fit: NodeFit | None = None
    nodes: Sequence[str] = ()
    bound_singly: bool = False
    inputs: str = ""
    nearness: tuple[tuple[int, int], ...] = ()

    def request_ad(self, now: datetime) -> RequestAd:
        """Ad of the request as sites see it at this moment."""
        avoided = frozenset(site_id for site_id, until in self.avoided.items() if until > now)
        unfit = self.node_fit.unfit if self.node_fit and not self.bound_singly else frozenset()
        return RequestAd(self.expressions, self.values, avoided, unfit, self.nearness)

    def unmet_needs(self, unfit: frozenset[int], names: Mapping[int, str]) -> str:
        """Sentences on the nodes that cannot run at these unfit sites; names of sites by id."""
        if self.node_fit is None or not unfit:
            return ""
        return unmet_sentences(self.node_fit, self.nodes, unfit, names, inputs=self.inputs)


@dataclass(frozen=True, slots=True)
class Share:
    """A submitter's effective priority (smaller is better) and the matches it holds."""

    effective_priority: float
    held: float = 0.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Current use: submitters with priorities, groups with quotas, and matches held.

    `submitters` by name; a missing one has never used anything. `held_by_group` are the matches
    held in the name of each group, without its children's.
    """

    submitters: Mapping[str, Share] = field(default_factory=dict)
    groups: Sequence[GroupShare] = ()
    held_by_group: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Time limits of a decision in seconds by `stopwatch`; unlimited without one."""

    stopwatch: Stopwatch | None = None
    request_s: float = math.inf
    decision_s: float = math.inf


@dataclass(frozen=True, slots=True)
class Match:
    """A DAG and the site it is matched to, with the ranks of both."""

    dag_id: int
    site_id: int
    dag_rank: float
    site_rank: float


@dataclass(frozen=True, slots=True)
class Decision:
    """Result of a cycle: matches, and for every other DAG the reason why it has none."""

    matches: list[Match] = field(default_factory=list)
    unmatched: dict[int, Leftover] = field(default_factory=dict)
    autoclusters: int = 0

    @property
    def is_cut(self) -> bool:
        """Whether time ran out before all requests were tried."""
        return any(leftover.kind is Kind.UNSEEN for leftover in self.unmatched.values())


def decide(
    requests: Sequence[Request],
    offers: Iterable[Offer],
    usage: Usage,
    limits: Mapping[str, Limit],
    now: datetime,
    *,
    bounds: Bounds | None = None,
) -> Decision:
    """Match requests with offers; each submitter's requests are served in the given order.

    Groups are served in starvation order, each up to what its quota and the surplus allot; within a
    group submitters are served best priority first, each up to its share of all slots less what it
    holds, then repeatedly up to its share of what is left. A site fits when the `Requirements` of
    both ads are true. Among fitting sites the largest `Rank` of the DAG wins, then the largest
    `Rank` of the site, then the least relative load (CurMatches / MaxMatches), then the name. An ad
    with `WantAdRevaluate` may be matched again in the same cycle and counts each match at once; an
    ad without it is used once. An autocluster of requests is tried until one of them finds no site.
    The arguments are not changed.
    """
    return Cycle(requests, offers, usage, limits, now, bounds or Bounds()).run()


class Cycle:
    """State of one negotiation cycle; `run` carries it out."""

    def __init__(
        self,
        requests: Sequence[Request],
        offers: Iterable[Offer],
        usage: Usage,
        limits: Mapping[str, Limit],
        now: datetime,
        bounds: Bounds,
    ) -> None:
        self._clock = bounds.stopwatch or (lambda: 0.0)
        self._deadline = self._clock() + bounds.decision_s
        self.site_pool = SitePool(
            offers, stopwatch=bounds.stopwatch, request_limit_s=bounds.request_s
        )
        self._least_group_size = min(
            (site.offer.group_size or math.inf for site in self.site_pool.sites), default=math.inf
        )
        self._usage = usage
        self._limits = LimitsInUse(limits)
        self._held = dict(usage.held_by_group)
        self._held_by_submitter = {name: share.held for name, share in usage.submitters.items()}
        self._searches: dict[int, CandidateHeap | Leftover] = {}
        self._decision = Decision()
        self._group_requests(requests, now)

    def _group_requests(self, requests: Sequence[Request], now: datetime) -> None:
        grouping = Grouping(self.site_pool.looked_up)
        self._cluster_of: dict[int, int] = {}
        self._request_ads: list[RequestAd] = []
        #: How many requests of each cluster are still to be served.
        self._alike: Counter[int] = Counter()
        #: The requests to be served, by group and submitter.
        self._queues: dict[str, dict[str, deque[Request]]] = {}
        for request in requests:
            request_ad = request.request_ad(now)
            number = grouping.number(request_ad)
            if number == len(self._request_ads):
                self._request_ads.append(request_ad)
            self._cluster_of[request.dag_id] = number
            self._alike[number] += 1
            queues = self._queues.setdefault(request.group, {})
            queues.setdefault(request.submitter, deque()).append(request)

    def run(self) -> Decision:
        """Serve the groups until nothing changes; the decision."""
        for _ in range(_ALLOTMENT_ROUNDS):
            before = len(self._decision.matches)
            waiting = {name: queues for name, queues in self._queues.items() if queues}
            for group, allotted in self._allotments(waiting):
                self._serve_group(group, allotted)
            if len(self._decision.matches) == before:
                break
        for group, queues in self._queues.items():
            for queue in queues.values():
                for request in queue:
                    self._leave(request, self._why_not_tried(request, group))
        return Decision(
            self._decision.matches, self._decision.unmatched, autoclusters=len(self._request_ads)
        )

    def _allotments(
        self, waiting: Mapping[str, Mapping[str, Sequence[Request]]]
    ) -> list[tuple[str, float]]:
        """Groups with waiting requests in starvation order, with the slots each may hold."""
        groups = self._usage.groups
        if not groups:
            return [(name, math.inf) for name in sorted(waiting)]
        total = self._total_slots()
        wanted = {
            name: sum(self._max_weight(request) for queue in queues.values() for request in queue)
            for name, queues in waiting.items()
        }
        demand = {
            name: self._held.get(name, 0.0) + wanted.get(name, 0.0)
            for name in {*self._held, *wanted}
        }
        allotted = allotments(groups, total, demand)
        order = starvation_order(effective_quotas(groups, total), self._held_with_children())
        return [(name, allotted.get(name, 0.0)) for name in order if name in waiting]

    def _total_slots(self) -> float:
        """Match slots of all sites; a site without maximum counts as large as the demand."""
        demand = sum(self._held.values()) + len(self._cluster_of)
        found = 0.0
        for site in self.site_pool.sites:
            if site.offer.closed:
                # Nothing new goes there, but what it has is held by somebody.
                found += site.matches
            else:
                found += site.max_matches if math.isfinite(site.max_matches) else demand
        return found

    def _max_weight(self, request: Request) -> float:
        """Most slots that a request takes at any site."""
        return max(1.0, request.unfinished_nodes / self._least_group_size)

    def _held_with_children(self) -> dict[str, float]:
        held: dict[str, float] = {}
        for name, amount in self._held.items():
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                above = ".".join(parts[:length])
                held[above] = held.get(above, 0.0) + amount
        return held

    def _serve_group(self, group: str, allotted: float) -> None:
        """Spin the pie among a group's submitters until it is gone or nobody wants more."""
        queues = self._queues[group]
        portions = self._shares(queues, min(allotted, self._total_slots()))
        portions = {
            name: portion - self._held_by_submitter.get(name, 0.0)
            for name, portion in portions.items()
        }
        while queues and self._held.get(group, 0.0) < allotted:
            for name in sorted(portions, key=lambda name: (self._priority(name), name)):
                self._serve(group, name, portions[name], allotted)
            free = sum(
                max(0.0, site.max_matches - site.matches)
                for site in self.site_pool.sites
                if site.is_free and math.isfinite(site.max_matches)
            )
            # At least one place: whoever has the best priority then tries its next request.
            portions = self._shares(queues, max(1.0, free))

    def _shares(self, queues: Mapping[str, object], total: float) -> dict[str, float]:
        return shares({name: self._priority(name) for name in queues}, total) if queues else {}

    def _priority(self, submitter: str) -> float:
        share = self._usage.submitters.get(submitter)
        return NEWCOMER_PRIORITY if share is None else share.effective_priority

    def _serve(self, group: str, submitter: str, portion: float, allotted: float) -> None:
        """Serve a submitter until its portion or the group's allotment is used up."""
        queue = self._queues[group][submitter]
        taken = 0.0
        slice_end = self._clock() + self._time_slice()
        while queue and taken < portion and self._held.get(group, 0.0) < allotted:
            weight = self._try(queue.popleft())
            taken += weight
            self._held[group] = self._held.get(group, 0.0) + weight
            if self._clock() > slice_end:
                break
        held = self._held_by_submitter.get(submitter, 0.0)
        self._held_by_submitter[submitter] = held + taken
        if not queue:
            del self._queues[group][submitter]

    def _time_slice(self) -> float:
        """Seconds that one submitter may use, so that the time left is enough for all."""
        waiting = sum(len(queues) for queues in self._queues.values())
        return max(0.0, self._deadline - self._clock()) / max(1, waiting)

    def _try(self, request: Request) -> float:
        """Match one request or record why not; return the slots that it takes."""
        found = self._best(request)
        if isinstance(found, Leftover):
            return self._leave(request, found)
        site, dag_rank, site_rank = found
        weight = site.offer.weight(request.unfinished_nodes)
        self.site_pool.take(site, weight)
        self._limits.take(request.limits)
        self._decision.matches.append(
            Match(request.dag_id, site.offer.site_id, dag_rank, site_rank)
        )
        return weight

    def _best(self, request: Request) -> tuple[CycleSite, float, float] | Leftover:
        """Best site for a request with the ranks of both, or why there is none now."""
        if self._clock() > self._deadline:
            return NO_TIME
        exceeded = self._limits.exceeded(request.limits)
        if exceeded is not None:
            return exceeded
        number = self._cluster_of[request.dag_id]
        search = self._search(number)
        found: tuple[CycleSite, float, float] | Leftover
        if isinstance(search, Leftover):
            found = search
        else:
            found = search.best() or self._give_up(number, search)
        self._alike[number] -= 1
        if not self._alike[number]:
            # Nobody will ask again, and where all are different these take much memory.
            del self._searches[number]
        return found

    def _give_up(self, number: int, search: CandidateHeap) -> Leftover:
        """Reason why a cluster finds no site; the cluster is not tried again."""
        reason = no_site_reason(self.site_pool, search.fits, search.cluster)
        self._searches[number] = reason
        return reason

    def _search(self, number: int) -> CandidateHeap | Leftover:
        """Candidate heap of a cluster, or why it finds no site."""
        search = self._searches.get(number)
        if search is None:
            try:
                search = self.site_pool.search(Cluster(self._request_ads[number]))
            except AdError as error:
                search = Leftover(Kind.FAULT, f"its ad cannot be made: {error}")
            except TooExpensive:
                text = "its Requirements and Rank take too long to evaluate"
                search = Leftover(Kind.FAULT, text)
            self._searches[number] = search
        return search

    def obstacle(self, request: Request) -> Leftover | None:
        """Limit or group quota that keeps a request from every site now; None without one."""
        exceeded = self._limits.exceeded(request.limits)
        if exceeded is not None:
            return exceeded
        for group, allotted in self._allotments({request.group: {request.submitter: [request]}}):
            if self._held.get(group, 0.0) < allotted:
                return None
        return self._over_quota(request.group)

    def _why_not_tried(self, request: Request, group: str) -> Leftover:
        """Reason for a request that was not tried since its group's allotment was used up.

        If no site would take it anyway, that is the reason: a larger quota would not help.
        """
        found = self._best(request)
        return found if isinstance(found, Leftover) else self._over_quota(group)

    def _over_quota(self, group: str) -> Leftover:
        held = self._held.get(group, 0.0)
        whose = f"The quota of the group {group}" if group else "What all groups' quotas leave"
        return Leftover(
            Kind.QUOTA, f"{whose} is used up, with the surplus of others: {held:g} held."
        )

    def _leave(self, request: Request, leftover: Leftover) -> float:
        avoided = self._request_ads[self._cluster_of[request.dag_id]].avoided
        names, reasons = self.site_pool.names, request.left_because
        left = {names[key]: reasons[key] for key in avoided & reasons.keys() & names.keys()}
        leftover = leftover.with_more(request.unmet_needs(leftover.unfit, names))
        self._decision.unmatched[request.dag_id] = leftover.with_more(reasons_for_leaving(left))
        return 0.0

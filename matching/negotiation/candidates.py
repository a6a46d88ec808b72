"""Candidate sites of a request in a negotiation cycle: whether both accept, ranks, the best site.

Also the pool of all sites of a cycle with the matches they got, and the time limit on evaluating
one request. A cycle may have a hundred thousand DAGs and a thousand sites. What cannot change
within the cycle is evaluated once for each autocluster and site. A match changes one attribute of
one site, its CurMatches: a site in the heap that became worse by it is evaluated again when it
comes to the top, one that became better is pushed again at once.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import IntEnum

from matching.negotiation.autoclusters import Cluster
from matching.negotiation.cycle_sites import COUNTER, CycleSite, Offer
from matching.negotiation.wanted_attributes import Wishes

#: Lists of all sites' agreements that are kept: where all requests differ, nobody asks again.
_MOST_KNOWN = 1000
#: Reads a clock that only rises, in seconds.
Stopwatch = Callable[[], float]


class TooExpensive(Exception):
    """Evaluating the request's expressions takes longer than one request may take."""


class Fit(IntEnum):
    """Whether request and site accept each other, even if the site is full or closed.

    A site is unfit for nodes where both accept, and a node of the DAG could not run.
    """

    WILLING = 0
    REFUSED_BY_DAG = 1
    REFUSED_BY_SITE = 2
    UNFIT_FOR_NODES = 3


class SitePreference:
    """Rank of each site for a request as the sites fill up; shared by clusters that rank alike.

    It holds the DAG's Rank, and its Requirements where they depend on CurMatches.
    """

    def __init__(
        self, cluster: Cluster, moving: Collection[str], *, has_moving_lookups: bool
    ) -> None:
        self._cluster = cluster
        #: True when the DAG's Requirements follow CurMatches.
        self.has_moving_requirements = has_moving_lookups or follows(
            cluster, "requirements", moving
        )
        self._is_moving = self.has_moving_requirements or follows(cluster, "rank", moving)
        self._values: dict[int, tuple[int, bool, float]] = {}
        self._read = 0
        #: Sites that a match has made better, one after another.
        self.improved: list[int] = []

    def value(self, site: CycleSite) -> tuple[bool, float]:
        """Whether the DAG's Requirements accept the site as it is now, and its Rank."""
        old = self._values.get(site.index)
        if old is not None and (old[0] == site.version or not self._is_moving):
            return old[1:]
        holds = not self.has_moving_requirements or self._cluster.accepts(site.ad)
        rank = self._cluster.rank(site.ad) if holds else -math.inf
        if old is not None and (holds, rank) > old[1:]:
            self.improved.append(site.index)
        self._values[site.index] = (site.version, holds, rank)
        return holds, rank

    def catch_up(self, log: Sequence[int], sites: Sequence[CycleSite]) -> None:
        """Evaluate again the sites that got matches since the last call."""
        if self._is_moving:
            for index in dict.fromkeys(log[self._read :]):
                self.value(sites[index])
        self._read = len(log)


class CandidateHeap:
    """Candidate sites of one autocluster, best first.

    An entry has the ranks of a site when it was pushed. Matches make sites worse, as a rule: so an
    entry is an upper bound, and is renewed when it comes to the top. Sites that became better are
    pushed again before the top is read.
    """

    def __init__(
        self, cluster: Cluster, fits: Sequence[Fit], preference: SitePreference, site_pool: SitePool
    ) -> None:
        self.fits = fits
        self.cluster = cluster
        self._preference = preference
        self._site_pool = site_pool
        self._has_moving_lookups = site_pool.has_moving_lookups(cluster)
        self._entries: list[tuple[float, int, float, float, str, int, int]] = []
        self._versions: dict[int, int] = {}
        self._read_of_preference = len(preference.improved)
        self._read_of_pool = len(site_pool.improved)
        self._read_of_log = len(site_pool.log)
        willing = [p for p in site_pool.sites if fits[p.index] is Fit.WILLING and p.is_free]
        site_pool.rank_all(preference, willing)
        for site in site_pool.sites:
            self._put(site)

    def best(self) -> tuple[CycleSite, float, float] | None:
        """Best site for the cluster now, with the ranks of the DAG and of the site."""
        self._catch_up()
        while self._entries:
            dag_rank, _, site_rank, _, _, index, version = self._entries[0]
            site = self._site_pool.sites[index]
            if site.version == version and site.is_free:
                return site, -dag_rank, -site_rank
            heapq.heappop(self._entries)
            self._put(site)
        return None

    def _put(self, site: CycleSite) -> None:
        """Push a site as it is now, unless it is pushed already or is no candidate."""
        if self._versions.get(site.index) == site.version or not site.is_free:
            return
        if (
            self.fits[site.index] is Fit.REFUSED_BY_DAG
            and not self._preference.has_moving_requirements
        ):
            return
        if site.offer.site_id in self.cluster.excluded:
            return
        suits, dag_rank = self._preference.value(site)
        is_let_in, site_rank = site.view(self.cluster)
        if suits and is_let_in:
            near = self.cluster.tenths_near(site.offer.site_id)
            entry = (-dag_rank, -near, -site_rank, site.load, site.offer.name, site.index)
            heapq.heappush(self._entries, (*entry, site.version))
            self._versions[site.index] = site.version

    def _catch_up(self) -> None:
        site_pool = self._site_pool
        self._preference.catch_up(site_pool.log, site_pool.sites)
        better = self._preference.improved[self._read_of_preference :]
        better += site_pool.improved[self._read_of_pool :]
        if self._has_moving_lookups:
            better += site_pool.log[self._read_of_log :]
        self._read_of_preference = len(self._preference.improved)
        self._read_of_pool = len(site_pool.improved)
        self._read_of_log = len(site_pool.log)
        for index in dict.fromkeys(better):
            self._put(site_pool.sites[index])


class SitePool:
    """All sites of a cycle, with the matches that they got so far.

    `request_limit_s` bounds the time, by `stopwatch`, that the Requirements of one cluster, and
    then its Rank, may take for all sites. The time of the sites' own expressions counts as well
    where they evaluate expressions of the cluster.
    """

    def __init__(
        self,
        offers: Iterable[Offer],
        *,
        stopwatch: Stopwatch | None = None,
        request_limit_s: float = math.inf,
    ) -> None:
        self.sites = [CycleSite(offer, index) for index, offer in enumerate(offers)]
        self.names = {site.offer.site_id: site.offer.name for site in self.sites}
        #: What the sites want of requests.
        self.wishes = Wishes(self.sites)
        #: Attributes of sites whose values follow CurMatches.
        self.moving = frozenset({COUNTER}).union(*(site.moving for site in self.sites))
        #: Names that sites look up in requests' ads.
        self.looked_up = frozenset[str]().union(*(site.looked_up for site in self.sites))
        self._echoed = frozenset[str]().union(*(site.echoed for site in self.sites))
        self._clock = stopwatch or _no_clock
        self._request_limit_s = request_limit_s
        self._preferences: dict[tuple[object, ...], SitePreference] = {}
        #: Whether no site's view of requests follows its CurMatches.
        self._is_steady = not any(site.has_moving_view for site in self.sites)
        self._known_agreements: dict[tuple[object, ...], list[Fit]] = {}
        #: The sites that got matches, and those that matches made better for some or all.
        self.log: list[int] = []
        self.improved: list[int] = []

    def search(self, cluster: Cluster) -> CandidateHeap:
        """Candidate heap of a cluster. Raises TooExpensive."""
        return CandidateHeap(cluster, self.assess(cluster), self._preference(cluster), self)

    def has_moving_lookups(self, cluster: Cluster) -> bool:
        """Whether attributes that sites look up in the cluster depend on their CurMatches."""
        return not cluster.exposed(self.looked_up).foreign.isdisjoint(self.moving)

    def assess(self, cluster: Cluster) -> list[Fit]:
        """Fit of each site with the cluster. Raises TooExpensive."""
        unfit = cluster.unfit
        return [
            Fit.UNFIT_FOR_NODES if fit is Fit.WILLING and site.offer.site_id in unfit else fit
            for site, fit in zip(self.sites, self._agreements_of(cluster), strict=True)
        ]

    def _agreements_of(self, cluster: Cluster) -> list[Fit]:
        """Fit by the ads alone, which clusters share that differ in where their nodes can run."""
        if not self._is_steady or follows(cluster, "requirements", self.moving):
            return self._agreements(cluster)
        if self.has_moving_lookups(cluster):
            return self._agreements(cluster)
        names = {"requirements"} | cluster.reach_of("requirements").own
        own = tuple((name, cluster.definitions.get(name)) for name in sorted(names))
        key = (*own, cluster.exposed(self.looked_up).texts)
        if key not in self._known_agreements:
            if len(self._known_agreements) >= _MOST_KNOWN:
                self._known_agreements.clear()
            self._known_agreements[key] = self._agreements(cluster)
        return self._known_agreements[key]

    def _agreements(self, cluster: Cluster) -> list[Fit]:
        fits = []
        spent_s = 0.0
        # What the site's own expressions take is not the request's fault, unless they call
        # functions of its ad.
        is_to_blame = any("(" in text for _, text in cluster.exposed(self.looked_up).texts)
        for site in self.sites:
            began_s = self._clock()
            is_accepted = cluster.accepts(site.ad)
            if not is_to_blame:
                spent_s += self._clock() - began_s
            fit = Fit.REFUSED_BY_DAG
            if is_accepted:
                is_let_in, _ = site.view(cluster)
                fit = Fit.WILLING if is_let_in else Fit.REFUSED_BY_SITE
            if is_to_blame:
                spent_s += self._clock() - began_s
            if spent_s > self._request_limit_s:
                raise TooExpensive
            fits.append(fit)
        return fits

    def rank_all(self, preference: SitePreference, sites: Iterable[CycleSite]) -> None:
        """Rank sites for the first time. Raises TooExpensive."""
        latest_s = self._clock() + self._request_limit_s
        for site in sites:
            preference.value(site)
            if self._clock() > latest_s:
                raise TooExpensive

    def take(self, site: CycleSite, weight: float) -> None:
        """Count a match at a site."""
        became_free = site.take(weight)
        self.log.append(site.index)
        if became_free or site.has_moving_view:
            self.improved.append(site.index)

    def _preference(self, cluster: Cluster) -> SitePreference:
        """Preference shared by all clusters that always rank all sites alike."""
        if self.has_moving_lookups(cluster):
            return SitePreference(cluster, self.moving, has_moving_lookups=True)
        names = {"rank"} | cluster.reach_of("rank").own
        if follows(cluster, "requirements", self.moving):
            names |= {"requirements"} | cluster.reach_of("requirements").own
        own = tuple((name, cluster.definitions.get(name)) for name in sorted(names))
        key = (*own, cluster.exposed(self._echoed).texts)
        if key not in self._preferences:
            self._preferences[key] = SitePreference(cluster, self.moving, has_moving_lookups=False)
        return self._preferences[key]


def follows(cluster: Cluster, name: str, moving: Collection[str]) -> bool:
    """Whether an attribute of a request depends on one of these attributes of a site."""
    return not cluster.reach_of(name).foreign.isdisjoint(moving)


def _no_clock() -> float:
    return 0.0

"""Finding the best site for a request: each pair is evaluated once, and again only where it must.

A cycle may hold a hundred thousand DAGs and a thousand sites. What cannot change within the cycle
is evaluated once for a cluster of requests and a site. A match changes one attribute of one site,
its CurMatches: a site that has become worse by it is evaluated again when it comes up next, one
that has become better is offered again at once.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import IntEnum

from matching.clusters import Cluster
from matching.places import COUNTER, Offer, Place

#: Reads a clock that only rises, in seconds.
Stopwatch = Callable[[], float]


class TooExpensive(Exception):
    """The expressions of a request take longer to evaluate than one request may take."""


class Fit(IntEnum):
    """How a request and a site stand to each other, whatever the site has to do at present."""

    WILLING = 0
    REFUSED_BY_DAG = 1
    REFUSED_BY_SITE = 2


class Taste:
    """What requests think of the sites as these fill up; shared by clusters that think alike.

    It holds the DAG's Rank, and its Requirements where they follow CurMatches.
    """

    def __init__(self, cluster: Cluster, moving: Collection[str], *, is_restless: bool) -> None:
        self._cluster = cluster
        #: True when the DAG's Requirements follow CurMatches.
        self.is_picky = is_restless or follows(cluster, "requirements", moving)
        self._is_moving = self.is_picky or follows(cluster, "rank", moving)
        self._values: dict[int, tuple[int, bool, float]] = {}
        self._read = 0
        #: Sites that a match has made better, one after another.
        self.improved: list[int] = []

    def value(self, place: Place) -> tuple[bool, float]:
        """Whether the site still suits, and its Rank, as the site is now."""
        old = self._values.get(place.index)
        if old is not None and (old[0] == place.version or not self._is_moving):
            return old[1:]
        holds = not self.is_picky or self._cluster.accepts(place.ad)
        rank = self._cluster.rank(place.ad) if holds else -math.inf
        if old is not None and (holds, rank) > old[1:]:
            self.improved.append(place.index)
        self._values[place.index] = (place.version, holds, rank)
        return holds, rank

    def catch_up(self, log: Sequence[int], places: Sequence[Place]) -> None:
        """Look again at the sites that got matches since the last time."""
        if self._is_moving:
            for index in dict.fromkeys(log[self._read :]):
                self.value(places[index])
        self._read = len(log)


class Search:
    """The candidates of one cluster, best first.

    An entry tells how good a site was when it was put in. By matches sites become worse, as a
    rule: so an entry promises at least what the site is worth now, and is renewed when it comes to
    the top. Sites that became better are put in again before the top is looked at.
    """

    def __init__(self, cluster: Cluster, fits: Sequence[Fit], taste: Taste, market: Market) -> None:
        self.fits = fits
        self._cluster = cluster
        self._taste = taste
        self._market = market
        self._is_restless = market.is_restless(cluster)
        self._entries: list[tuple[float, float, float, str, int, int]] = []
        self._put_in: dict[int, int] = {}
        self._read_of_taste = len(taste.improved)
        self._read_of_market = len(market.improved)
        self._read_of_log = len(market.log)
        willing = [p for p in market.places if fits[p.index] is Fit.WILLING and p.is_free]
        market.rank_all(taste, willing)
        for place in market.places:
            self._put(place)

    def best(self) -> tuple[Place, float, float] | None:
        """The best site for the cluster now, with the ranks of the DAG and of the site."""
        self._catch_up()
        while self._entries:
            dag_rank, site_rank, _, _, index, version = self._entries[0]
            place = self._market.places[index]
            if place.version == version and place.is_free:
                return place, -dag_rank, -site_rank
            heapq.heappop(self._entries)
            self._put(place)
        return None

    def _put(self, place: Place) -> None:
        """Put a site in as it is now, unless it is in so already, or is no candidate."""
        if self._put_in.get(place.index) == place.version or not place.is_free:
            return
        if self.fits[place.index] is Fit.REFUSED_BY_DAG and not self._taste.is_picky:
            return
        if place.offer.site_id in self._cluster.avoided:
            return
        suits, dag_rank = self._taste.value(place)
        is_let_in, site_rank = place.view(self._cluster)
        if suits and is_let_in:
            entry = (-dag_rank, -site_rank, place.load, place.offer.name, place.index)
            heapq.heappush(self._entries, (*entry, place.version))
            self._put_in[place.index] = place.version

    def _catch_up(self) -> None:
        market = self._market
        self._taste.catch_up(market.log, market.places)
        better = self._taste.improved[self._read_of_taste :]
        better += market.improved[self._read_of_market :]
        if self._is_restless:
            better += market.log[self._read_of_log :]
        self._read_of_taste = len(self._taste.improved)
        self._read_of_market = len(market.improved)
        self._read_of_log = len(market.log)
        for index in dict.fromkeys(better):
            self._put(market.places[index])


class Market:
    """All sites of a cycle, with what happened to them so far.

    `request_limit_s` bounds what the Requirements of one cluster, and then its Rank, may take for
    all sites, by `stopwatch`. What the sites' own expressions take counts as well where they
    evaluate expressions of the cluster.
    """

    def __init__(
        self,
        offers: Iterable[Offer],
        *,
        stopwatch: Stopwatch | None = None,
        request_limit_s: float = math.inf,
    ) -> None:
        self.places = [Place(offer, index) for index, offer in enumerate(offers)]
        self.names = {place.offer.site_id: place.offer.name for place in self.places}
        #: Attributes of sites whose values follow CurMatches.
        self.moving = frozenset({COUNTER}).union(*(place.moving for place in self.places))
        #: Names that sites look up in requests' ads.
        self.asked = frozenset[str]().union(*(place.asked for place in self.places))
        self._echoed = frozenset[str]().union(*(place.echoed for place in self.places))
        self._clock = stopwatch or _no_clock
        self._request_limit_s = request_limit_s
        self._tastes: dict[tuple[object, ...], Taste] = {}
        #: The sites that got matches, and those that matches made better for some or all.
        self.log: list[int] = []
        self.improved: list[int] = []

    def search(self, cluster: Cluster) -> Search:
        """Look at all sites for a cluster. Raises TooExpensive."""
        return Search(cluster, self.assess(cluster), self._taste(cluster), self)

    def is_restless(self, cluster: Cluster) -> bool:
        """True when what sites ask of the cluster follows their own CurMatches."""
        return not cluster.answers(self.asked).foreign.isdisjoint(self.moving)

    def assess(self, cluster: Cluster) -> list[Fit]:
        """How each site and the cluster stand to each other. Raises TooExpensive."""
        fits = []
        spent_s = 0.0
        # What the site's own expressions take is not the request's fault, unless they call
        # functions of its ad.
        is_to_blame = any("(" in text for _, text in cluster.answers(self.asked).texts)
        for place in self.places:
            began_s = self._clock()
            is_accepted = cluster.accepts(place.ad)
            if not is_to_blame:
                spent_s += self._clock() - began_s
            fit = Fit.REFUSED_BY_DAG
            if is_accepted:
                is_let_in, _ = place.view(cluster)
                fit = Fit.WILLING if is_let_in else Fit.REFUSED_BY_SITE
            if is_to_blame:
                spent_s += self._clock() - began_s
            if spent_s > self._request_limit_s:
                raise TooExpensive
            fits.append(fit)
        return fits

    def rank_all(self, taste: Taste, places: Iterable[Place]) -> None:
        """Have sites ranked for the first time. Raises TooExpensive."""
        latest_s = self._clock() + self._request_limit_s
        for place in places:
            taste.value(place)
            if self._clock() > latest_s:
                raise TooExpensive

    def take(self, place: Place, weight: float) -> None:
        """Count a match at a site."""
        became_free = place.take(weight)
        self.log.append(place.index)
        if became_free or place.is_fickle:
            self.improved.append(place.index)

    def _taste(self, cluster: Cluster) -> Taste:
        """The common taste of all clusters that rank all sites alike at all times."""
        if self.is_restless(cluster):
            return Taste(cluster, self.moving, is_restless=True)
        names = {"rank"} | cluster.reach_of("rank").own
        if follows(cluster, "requirements", self.moving):
            names |= {"requirements"} | cluster.reach_of("requirements").own
        own = tuple((name, cluster.definitions.get(name)) for name in sorted(names))
        key = (*own, cluster.answers(self._echoed).texts)
        if key not in self._tastes:
            self._tastes[key] = Taste(cluster, self.moving, is_restless=False)
        return self._tastes[key]


def follows(cluster: Cluster, name: str, moving: Collection[str]) -> bool:
    """True when an attribute of a request depends on one of these attributes of a site."""
    return not cluster.reach_of(name).foreign.isdisjoint(moving)


def _no_clock() -> float:
    return 0.0

"""Sites within a cycle: their ads count the matches that they have got so far."""

from __future__ import annotations

import math
from dataclasses import dataclass

import classad2

from matching.classads import as_rank, attribute_value, evaluate, rank_value
from matching.clusters import Cluster
from matching.conjuncts import Conjunct, conjuncts_of
from matching.expressions import Reach, reach

COUNTER = "curmatches"
_MATCHING = frozenset({"requirements", "rank"})


@dataclass(frozen=True, slots=True)
class Offer:
    """A site with the ad under which it is published.

    `closed` tells why the site takes no DAG now whatever its ad says; empty when it is open.
    `allowance` is how many new matches it may get, None for any number. `group_size` is how many
    unfinished nodes count as one match; None where each DAG counts as one.
    """

    site_id: int
    name: str
    ad: classad2.ClassAd
    closed: str = ""
    allowance: float | None = None
    group_size: float | None = None

    def weight(self, unfinished_nodes: int) -> float:
        """How much of the site's MaxMatches a DAG with so many unfinished nodes takes."""
        return 1.0 if self.group_size is None else unfinished_nodes / self.group_size


class Place:
    """A site with its own copy of its ad, in which CurMatches rises with each match."""

    def __init__(self, offer: Offer, index: int) -> None:
        self.offer = offer
        self.index = index
        self.ad = classad2.ClassAd(repr(offer.ad))
        self.definitions = {name.lower(): str(self.ad.lookup(name)) for name in list(self.ad)}
        self.given = 0
        self.current = number_of(self.ad, "CurMatches", 0.0)
        self.most = number_of(self.ad, "MaxMatches", math.inf)
        self._is_revaluated = attribute_value(self.ad, "WantAdRevaluate", False) is True
        #: Attributes whose values follow CurMatches.
        self.moving = frozenset(
            name
            for name, text in self.definitions.items()
            if name == COUNTER or COUNTER in reach([text], self.definitions).own
        )
        #: Names that the site looks up in requests' ads, and those among them that it needs for
        #: attributes which requests may look up in turn.
        self.asked = self._reach_of(*self.definitions).foreign
        self.echoed = self._reach_of(*(self.definitions.keys() - _MATCHING)).foreign
        conjuncts = self.conjuncts()
        #: Conjuncts that look at the site alone are the same for every request.
        self._guards = [c.expression for c in conjuncts if not c.reach.foreign]
        self._gates = [c.expression for c in conjuncts if c.reach.foreign]
        ranked = self._reach_of("rank")
        wanted = [ranked, *(c.reach for c in conjuncts if c.reach.foreign)]
        self._asks = frozenset[str]().union(*(part.foreign for part in wanted))
        #: True when the site's view of a request follows CurMatches.
        self.is_fickle = any(not part.own.isdisjoint(self.moving) for part in wanted)
        self._has_room_when_empty: bool | None = None
        self._views: dict[tuple[object, ...], tuple[bool, float]] = {}
        self.is_free = self._is_free()

    def conjuncts(self) -> list[Conjunct]:
        """The conjuncts of the site's own Requirements."""
        return conjuncts_of(self.definitions.get("requirements"), self.definitions)

    @property
    def version(self) -> int:
        """Changes with each match, as CurMatches does."""
        return self.given

    @property
    def load(self) -> float:
        """CurMatches / MaxMatches."""
        return self.current / self.most if self.most > 0 else 1.0

    @property
    def is_used_up(self) -> bool:
        """True when the site may get no further match in this cycle, by its allowance."""
        return self.offer.allowance is not None and self.given + 1 > self.offer.allowance

    @property
    def has_room(self) -> bool:
        """True when those conjuncts hold that look at the site alone, its count among them."""
        return all(evaluate(guard, self.ad) is True for guard in self._guards)

    @property
    def has_room_when_empty(self) -> bool:
        """True when those conjuncts would hold if nothing were bound to the site."""
        if self._has_room_when_empty is None:
            empty = classad2.ClassAd(repr(self.ad))
            empty["CurMatches"] = 0
            self._has_room_when_empty = all(evaluate(g, empty) is True for g in self._guards)
        return self._has_room_when_empty

    def view(self, cluster: Cluster) -> tuple[bool, float]:
        """Whether the site lets the cluster in, its room apart, and its Rank for it."""
        answers = cluster.answers(self._asks)
        seen: tuple[object, ...] = answers.texts
        if not answers.foreign.isdisjoint(self.definitions):
            # The answers depend on attributes of the site, which may ask back for others.
            seen = (*seen, cluster.answers(self.echoed).texts)
        if self.is_fickle or not answers.foreign.isdisjoint(self.moving):
            seen = (self.version, *seen)
        if seen not in self._views:
            holds = all(evaluate(gate, self.ad, cluster.ad) is True for gate in self._gates)
            self._views[seen] = (holds, rank_value(self.ad, cluster.ad) if holds else 0.0)
        return self._views[seen]

    def take(self, weight: float) -> bool:
        """Count a match; True when the site became free by it, as strange expressions can do."""
        was_free = self.is_free
        self.given += 1
        self.current += weight
        is_whole = self.offer.group_size is None
        self.ad["CurMatches"] = int(self.current) if is_whole else self.current
        self.is_free = self._is_free()
        return self.is_free and not was_free

    def _is_free(self) -> bool:
        if self.offer.closed or self.is_used_up or (self.given and not self._is_revaluated):
            return False
        return self.has_room

    def _reach_of(self, *names: str) -> Reach:
        texts = [self.definitions[name] for name in names if name in self.definitions]
        return reach(texts, self.definitions)


def number_of(ad: classad2.ClassAd, name: str, default: float) -> float:
    """A number of an ad; `default` where it is missing, 0.0 where it is none."""
    return as_rank(attribute_value(ad, name, default))

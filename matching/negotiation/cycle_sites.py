"""Sites in a negotiation cycle: ad, load, room left, acceptance and Rank of a request.

CurMatches rises with each match. Also a site as it is offered to the cycle (`Offer`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import classad2

from matching.ads.classads import as_rank, attribute_value, evaluate, rank_value
from matching.ads.conjuncts import Conjunct, conjuncts_of
from matching.ads.expressions import Reach, reach, references
from matching.negotiation.autoclusters import Cluster

COUNTER = "curmatches"
_MATCHING = frozenset({"requirements", "rank"})


@dataclass(frozen=True, slots=True)
class Offer:
    """A site with its published ad.

    `closed` is the reason why the site takes no DAG now, whatever its ad says; empty when it is
    open. `allowance` is how many new matches it may get, None for any number. `group_size` is how
    many unfinished nodes count as one match; None where each DAG counts as one.
    """

    site_id: int
    name: str
    ad: classad2.ClassAd
    closed: str = ""
    allowance: float | None = None
    group_size: float | None = None

    def weight(self, unfinished_nodes: int) -> float:
        """Part of the site's MaxMatches that a DAG with this many unfinished nodes takes."""
        return 1.0 if self.group_size is None else unfinished_nodes / self.group_size


class CycleSite:
    """A site with its own copy of its ad, in which CurMatches rises with each match."""

    def __init__(self, offer: Offer, index: int) -> None:
        self.offer = offer
        self.index = index
        self.ad = classad2.ClassAd(repr(offer.ad))
        self.definitions = {name.lower(): str(self.ad.lookup(name)) for name in list(self.ad)}
        self.match_count = 0
        self.matches = number_of(self.ad, "CurMatches", 0.0)
        self.max_matches = number_of(self.ad, "MaxMatches", math.inf)
        self._is_revaluated = attribute_value(self.ad, "WantAdRevaluate", False) is True
        # A set is compared with a set by the smaller one.
        self._names = frozenset(self.definitions)
        # Most attributes are plain values, which nothing follows from.
        referring = {name: text for name, text in self.definitions.items() if references(text)}
        #: Attributes whose values follow CurMatches.
        self.moving = frozenset(
            name
            for name, text in referring.items()
            if COUNTER in reach([text], self.definitions).own
        ).union({COUNTER} & self.definitions.keys())
        #: Names that the site looks up in requests' ads, and those among them that it needs for
        #: attributes which requests may look up in turn.
        self.looked_up = self._reach_of(*referring).foreign
        self.echoed = self._reach_of(*(referring.keys() - _MATCHING)).foreign
        conjuncts = self.conjuncts()
        #: Conjuncts that look at the site alone are the same for every request.
        self._guards = [c.expression for c in conjuncts if not c.reach.foreign]
        #: Conjuncts that look at requests.
        self.gates = [c for c in conjuncts if c.reach.foreign]
        ranked = self._reach_of("rank")
        looking = [ranked, *(gate.reach for gate in self.gates)]
        self._gate_lookups = frozenset[str]().union(*(part.foreign for part in looking))
        #: True when the site's view of a request follows CurMatches.
        self.has_moving_view = any(not part.own.isdisjoint(self.moving) for part in looking)
        self._has_space_when_empty: bool | None = None
        self._views: dict[tuple[object, ...], tuple[bool, float]] = {}
        self.is_free = self._is_free()

    def conjuncts(self) -> list[Conjunct]:
        """Conjuncts of the site's own Requirements."""
        return conjuncts_of(self.definitions.get("requirements"), self.definitions)

    @property
    def version(self) -> int:
        """Number that changes with each match."""
        return self.match_count

    @property
    def load(self) -> float:
        """CurMatches / MaxMatches."""
        return self.matches / self.max_matches if self.max_matches > 0 else 1.0

    @property
    def is_used_up(self) -> bool:
        """Whether the site's allowance permits no further match in this cycle."""
        return self.offer.allowance is not None and self.match_count + 1 > self.offer.allowance

    @property
    def has_space(self) -> bool:
        """Whether the conjuncts that depend on the site alone are true, CurMatches included."""
        return all(evaluate(guard, self.ad) is True for guard in self._guards)

    @property
    def has_space_when_empty(self) -> bool:
        """Whether those conjuncts would be true with CurMatches = 0."""
        if self._has_space_when_empty is None:
            empty = classad2.ClassAd(repr(self.ad))
            empty["CurMatches"] = 0
            self._has_space_when_empty = all(evaluate(g, empty) is True for g in self._guards)
        return self._has_space_when_empty

    def view(self, cluster: Cluster) -> tuple[bool, float]:
        """Whether the site accepts the cluster, regardless of space, and its Rank for it."""
        key = self.view_key(cluster)
        if key not in self._views:
            holds = all(evaluate(gate.expression, self.ad, cluster.ad) is True
                        for gate in self.gates)  # fmt: skip
            self._views[key] = (holds, rank_value(self.ad, cluster.ad) if holds else 0.0)
        return self._views[key]

    def view_key(self, cluster: Cluster) -> tuple[object, ...]:
        """Key by which clusters that look alike to the site are told, as it is now."""
        exposed = cluster.exposed(self._gate_lookups)
        key: tuple[object, ...] = exposed.texts
        if not exposed.foreign.isdisjoint(self._names):
            # The answers depend on attributes of the site, which may ask back for others.
            key = (*key, cluster.exposed(self.echoed).texts)
        if self.has_moving_view or not exposed.foreign.isdisjoint(self.moving):
            key = (self.version, *key)
        return key

    def take(self, weight: float) -> bool:
        """Count a match; True when that made the site free, as unusual expressions can do."""
        was_free = self.is_free
        self.match_count += 1
        self.matches += weight
        is_whole = self.offer.group_size is None
        self.ad["CurMatches"] = int(self.matches) if is_whole else self.matches
        self.is_free = self._is_free()
        return self.is_free and not was_free

    def _is_free(self) -> bool:
        if self.offer.closed or self.is_used_up or (self.match_count and not self._is_revaluated):
            return False
        return self.has_space

    def _reach_of(self, *names: str) -> Reach:
        texts = [self.definitions[name] for name in names if name in self.definitions]
        return reach(texts, self.definitions)


def number_of(ad: classad2.ClassAd, name: str, default: float) -> float:
    """Number of an ad's attribute; `default` where it is missing, 0.0 where it is not a number."""
    return as_rank(attribute_value(ad, name, default))

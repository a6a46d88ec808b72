"""Autoclusters of idle DAGs, as in HTCondor: equal significant attributes are evaluated once.

Holds the ad of a request, the common ad of an autocluster with its acceptance and Rank of a site,
the attributes that sites look up in it, and the numbering of requests by autocluster.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import classad2

from matching.ads.ad_cost import check_cost
from matching.ads.classads import as_rank, build_ad, evaluate
from matching.ads.conjuncts import Conjunct, conjuncts_of
from matching.ads.expressions import Reach, reach

_MATCHING = ("requirements", "rank")


@dataclass(frozen=True, slots=True)
class RequestAd:
    """Ad of a request, before it is built: expressions and values by name; values win.

    `avoided` are the ids of sites that it must not go to, `unfit` those where not all of its nodes
    can run. `nearness` tells, of sites that its input data are near, how many tenths of them are.
    """

    expressions: Mapping[str, str]
    values: Mapping[str, object] = field(default_factory=dict)
    avoided: frozenset[int] = frozenset()
    unfit: frozenset[int] = frozenset()
    nearness: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ExposedAttributes:
    """Attributes of a request that sites look up, with all that these depend on.

    `foreign` are names of the site's own attributes that the request's expressions look up in turn.
    """

    texts: tuple[tuple[str, str], ...]
    foreign: frozenset[str]


class Cluster:
    """The common ad of requests that no site can tell apart."""

    def __init__(self, request_ad: RequestAd) -> None:
        """Build the ad. Raises AdError if it cannot be built or is not safe to evaluate."""
        # Whoever stored it has checked it: by the rules of that time.
        check_cost(request_ad.expressions)
        self.ad = build_ad(request_ad.expressions, request_ad.values)
        self.avoided = request_ad.avoided
        self.unfit = request_ad.unfit
        self.nearness = request_ad.nearness
        #: Tenths of its input data by site: they decide between sites of one Rank.
        self._tenths = dict(request_ad.nearness)
        #: Sites that it does not go to, whatever the ads say.
        self.excluded = request_ad.avoided | request_ad.unfit
        self.definitions = {name.lower(): str(self.ad.lookup(name)) for name in list(self.ad)}
        self._exposed: dict[frozenset[str], ExposedAttributes] = {}
        # As it was written, for people; `definitions` have the library's spelling.
        written = {name.lower(): text for name, text in request_ad.expressions.items()}
        self._written = written.get("requirements", self.definitions.get("requirements"))
        self._requirements = self._expression("Requirements")
        self._rank = self._expression("Rank")

    def _expression(self, name: str) -> classad2.ExprTree | None:
        return self.ad.lookup(name) if name.lower() in self.definitions else None

    def changed(self, name: str, expression: str) -> Cluster:
        """Copy of the cluster with one attribute set to another expression. Raises AdError."""
        expressions = {
            spelled: str(self.ad.lookup(spelled))
            for spelled in list(self.ad)
            if spelled.lower() != name.lower()
        }
        changed = {**expressions, name: expression}
        request_ad = RequestAd(
            changed, avoided=self.avoided, unfit=self.unfit, nearness=self.nearness
        )
        return Cluster(request_ad)

    def tenths_near(self, site_id: int) -> int:
        """Tenths of the request's input data that are near a site."""
        return self._tenths.get(site_id, 0)

    def accepts(self, site: classad2.ClassAd) -> bool:
        """Whether the request's Requirements are true for a site; undefined and error refuse."""
        return self._requirements is None or evaluate(self._requirements, self.ad, site) is True

    def rank(self, site: classad2.ClassAd) -> float:
        """Rank of a site for the request."""
        return 0.0 if self._rank is None else as_rank(evaluate(self._rank, self.ad, site))

    def conjuncts(self) -> list[Conjunct]:
        """Conjuncts of the request's Requirements."""
        return conjuncts_of(self._written, self.definitions)

    def reach_of(self, *names: str) -> Reach:
        """Attributes that these attributes of the ad depend on."""
        texts = [self.definitions[name] for name in names if name in self.definitions]
        return reach(texts, self.definitions)

    def exposed(self, looked_up: frozenset[str]) -> ExposedAttributes:
        """Values of the attributes with these names, as sites that look them up see them."""
        if looked_up not in self._exposed:
            found = self.reach_of(*looked_up)
            names = sorted((looked_up | found.own) & self.definitions.keys())
            texts = tuple((name, self.definitions[name]) for name in names)
            self._exposed[looked_up] = ExposedAttributes(texts, found.foreign)
        return self._exposed[looked_up]


def _significant(request_ad: RequestAd, looked_up: Collection[str]) -> list[str]:
    """Significant attributes of a request: those that a match can depend on, in lower case."""
    texts = {name.lower(): text for name, text in request_ad.expressions.items()}
    # A value is text without references; its name has to be found in the ad all the same.
    known = {**texts, **dict.fromkeys(map(str.lower, request_ad.values), "0")}
    names = [name for name in (*_MATCHING, *looked_up) if name in known]
    found = reach([known[name] for name in names], known)
    return sorted({*names, *found.own})


class Grouping:
    """Numbers requests by autocluster: equal numbers for equal significant attributes and sites.

    `looked_up` are the names that sites look up in requests' ads. Attributes that neither sites nor
    the request's own Requirements and Rank refer to, directly or not, are not significant.
    """

    def __init__(self, looked_up: Iterable[str]) -> None:
        self._looked_up = tuple(sorted(looked_up))
        self._plans: dict[Hashable, tuple[Hashable, tuple[str, ...]]] = {}
        self._numbers: dict[Hashable, int] = {}

    def number(self, request_ad: RequestAd) -> int:
        """Number of the request's autocluster, from 0 in the order of first requests."""
        outline = (*request_ad.expressions.items(), None, *request_ad.values)
        plan = self._plans.get(outline)
        if plan is None:
            plan = self._plans[outline] = self._plan(request_ad)
        fixed, value_names = plan
        values = tuple([request_ad.values[name] for name in value_names])
        key = (fixed, values, request_ad.avoided, request_ad.unfit, request_ad.nearness)
        return self._numbers.setdefault(key, len(self._numbers))

    def _plan(self, request_ad: RequestAd) -> tuple[Hashable, tuple[str, ...]]:
        """Significant expressions, and the names of the significant values."""
        significant = set(_significant(request_ad, self._looked_up))
        value_names = tuple(name for name in request_ad.values if name.lower() in significant)
        taken = {name.lower() for name in request_ad.values}
        fixed = tuple(
            (name.lower(), text)
            for name, text in sorted(request_ad.expressions.items())
            if name.lower() in significant and name.lower() not in taken
        )
        return (fixed, value_names), value_names

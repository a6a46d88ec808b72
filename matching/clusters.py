"""Requests that no site can tell apart are evaluated once: HTCondor's autoclusters."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import classad2

from matching.adcost import check_cost
from matching.classads import as_rank, build_ad, evaluate
from matching.conjuncts import Conjunct, conjuncts_of
from matching.expressions import Reach, reach

_MATCHING = ("requirements", "rank")


@dataclass(frozen=True, slots=True)
class Wish:
    """What is known of a request: expressions of its ad and values, by name; values win.

    `avoided` are the ids of sites that it must not go to.
    """

    expressions: Mapping[str, str]
    values: Mapping[str, object] = field(default_factory=dict)
    avoided: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Answers:
    """What sites that ask for some attributes learn of a request.

    `foreign` are the names of their own attributes that it depends on in its turn.
    """

    texts: tuple[tuple[str, str], ...]
    foreign: frozenset[str]


class Cluster:
    """The common ad of requests that look the same to every site."""

    def __init__(self, wish: Wish) -> None:
        """Make the ad. Raises AdError for one that cannot be made, or is not safe to evaluate."""
        # Whoever stored it has checked it: by the rules of that time.
        check_cost(wish.expressions)
        self.ad = build_ad(wish.expressions, wish.values)
        self.avoided = wish.avoided
        self.definitions = {name.lower(): str(self.ad.lookup(name)) for name in list(self.ad)}
        self._answers: dict[frozenset[str], Answers] = {}
        # As it was written, for people; `definitions` have the library's spelling.
        written = {name.lower(): text for name, text in wish.expressions.items()}
        self._written = written.get("requirements", self.definitions.get("requirements"))
        self._requirements = self._expression("Requirements")
        self._rank = self._expression("Rank")

    def _expression(self, name: str) -> classad2.ExprTree | None:
        return self.ad.lookup(name) if name.lower() in self.definitions else None

    def changed(self, name: str, expression: str) -> Cluster:
        """The cluster with one attribute set to another expression. Raises AdError."""
        expressions = {
            spelled: str(self.ad.lookup(spelled))
            for spelled in list(self.ad)
            if spelled.lower() != name.lower()
        }
        return Cluster(Wish({**expressions, name: expression}, avoided=self.avoided))

    def accepts(self, site: classad2.ClassAd) -> bool:
        """True when the Requirements hold for a site; undefined and error refuse."""
        return self._requirements is None or evaluate(self._requirements, self.ad, site) is True

    def rank(self, site: classad2.ClassAd) -> float:
        """The Rank that the request gives a site."""
        return 0.0 if self._rank is None else as_rank(evaluate(self._rank, self.ad, site))

    def conjuncts(self) -> list[Conjunct]:
        """The conjuncts of the Requirements."""
        return conjuncts_of(self._written, self.definitions)

    def reach_of(self, *names: str) -> Reach:
        """What these attributes of the ad depend on."""
        texts = [self.definitions[name] for name in names if name in self.definitions]
        return reach(texts, self.definitions)

    def answers(self, asked: frozenset[str]) -> Answers:
        """What the request tells to those who look up these names in its ad."""
        if asked not in self._answers:
            found = self.reach_of(*asked)
            names = sorted((asked | found.own) & self.definitions.keys())
            texts = tuple((name, self.definitions[name]) for name in names)
            self._answers[asked] = Answers(texts, found.foreign)
        return self._answers[asked]


def _significant(wish: Wish, asked: Collection[str]) -> list[str]:
    """The attributes of a wish that a match can depend on, in lower case."""
    texts = {name.lower(): text for name, text in wish.expressions.items()}
    # A value is text without references; its name has to be found in the ad all the same.
    known = {**texts, **dict.fromkeys(map(str.lower, wish.values), "0")}
    names = [name for name in (*_MATCHING, *asked) if name in known]
    found = reach([known[name] for name in names], known)
    return sorted({*names, *found.own})


class Grouping:
    """Numbers requests by clusters: those with equal significant attributes.

    `asked` are the names that sites look up in requests' ads: what neither they nor the request's
    own Requirements and Rank refer to, directly or not, does not tell requests apart.
    """

    def __init__(self, asked: Iterable[str]) -> None:
        self._asked = tuple(sorted(asked))
        self._plans: dict[Hashable, tuple[Hashable, tuple[str, ...]]] = {}
        self._numbers: dict[Hashable, int] = {}

    def number(self, wish: Wish) -> int:
        """The number of the request's cluster, from 0 on in the order of their first requests."""
        outline = (*wish.expressions.items(), None, *wish.values)
        plan = self._plans.get(outline)
        if plan is None:
            plan = self._plans[outline] = self._plan(wish)
        fixed, telling = plan
        key = (fixed, tuple([wish.values[name] for name in telling]), wish.avoided)
        return self._numbers.setdefault(key, len(self._numbers))

    def _plan(self, wish: Wish) -> tuple[Hashable, tuple[str, ...]]:
        """What of the expressions counts, and which values do."""
        significant = set(_significant(wish, self._asked))
        telling = tuple(name for name in wish.values if name.lower() in significant)
        taken = {name.lower() for name in wish.values}
        fixed = tuple(
            (name.lower(), text)
            for name, text in sorted(wish.expressions.items())
            if name.lower() in significant and name.lower() not in taken
        )
        return (fixed, telling), telling

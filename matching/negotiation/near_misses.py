"""Near misses of a request: single changes of attributes or conjuncts that make more sites fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import SequenceMatcher

import classad2

from matching.ads.classads import AdError, evaluate
from matching.ads.conjuncts import Conjunct
from matching.ads.expressions import Reach
from matching.ads.literals import (
    LITERAL,
    Literal,
    is_literal,
    literal_text,
    literal_value,
    literals_in,
)
from matching.negotiation.autoclusters import Cluster
from matching.negotiation.candidates import Fit, SitePool, TooExpensive
from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import Bounds, Request

#: Values tried for each attribute, changes listed for each, and changes listed in all.
_MAX_VALUES = 24
_MAX_STEPS = 3
#: Words that are compared with the one that is given.
_MAX_COMPARED = 500
_MAX_MISSES = 12


@dataclass(frozen=True, slots=True)
class NearMiss:
    """One change of a request, and how many sites fit before and after it.

    `attribute` is set from `old` to `new`, both expressions; for Requirements, `old` is one
    conjunct and `new` is empty or the altered conjunct. If it is not `enough`, the sites that are
    counted agree with the request, and have no queue for one of its nodes.
    """

    attribute: str
    old: str
    new: str
    before: int
    after: int
    is_enough: bool = True


def near_misses(
    request: Request, offers: Iterable[Offer], now: datetime, *, bounds: Bounds | None = None
) -> tuple[NearMiss, ...]:
    """Single changes after which more sites fit, even if these are full or closed now.

    Tried are: other values for the request's attributes that Requirements of either side refer to,
    other values for literals in its Requirements, and its Requirements without one conjunct. The
    values come from the sites' ads. Returned are the nearest value with a gain, and some with a
    larger gain; where none makes any site fit, those after which more sites agree. Empty for a
    request whose ad cannot be built; after the time in `bounds` nothing more is tried.
    """
    try:
        return _Trial(request, offers, now, bounds or Bounds()).misses()
    except (AdError, TooExpensive):
        return ()


class _Trial:
    """Tries changes of one request on all sites."""

    def __init__(
        self, request: Request, offers: Iterable[Offer], now: datetime, bounds: Bounds
    ) -> None:
        self._clock = bounds.stopwatch or (lambda: 0.0)
        self._deadline = self._clock() + bounds.decision_s
        self._site_pool = SitePool(
            offers, stopwatch=bounds.stopwatch, request_limit_s=bounds.request_s
        )
        self._cluster = Cluster(request.request_ad(now))
        self._conjuncts = self._cluster.conjuncts()
        self._counted = {Fit.WILLING}
        self._before = self._fitting_sites(self._cluster)

    def misses(self) -> tuple[NearMiss, ...]:
        """Changes of attributes, then of literals, then Requirements without a conjunct."""
        found = self._changes()
        if not found and not self._before and self._cluster.unfit:
            self._counted = {Fit.WILLING, Fit.UNFIT_FOR_NODES}
            self._before = self._fitting_sites(self._cluster)
            found = [replace(each, is_enough=False) for each in self._changes()]
        return tuple(found[:_MAX_MISSES])

    def _changes(self) -> list[NearMiss]:
        return [*self._attribute_changes(), *self._literal_changes(), *self._dropped_conjuncts()]

    def _fitting_sites(self, cluster: Cluster) -> int:
        return sum(fit in self._counted for fit in self._site_pool.assess(cluster))

    def _after(self, attribute: str, expression: str) -> int:
        if self._clock() > self._deadline:
            return 0
        try:
            return self._fitting_sites(self._cluster.changed(attribute, expression))
        except (AdError, TooExpensive):
            return 0

    def _attribute_changes(self) -> Iterator[NearMiss]:
        for name, values in sorted(self._candidate_values().items()):
            definitions = self._cluster.definitions
            old = definitions.get(name, "")
            spelled = next((n for n in self._cluster.ad if n.lower() == name), None)
            shown = spelled or self._spelling(name)
            yield from self._steps(
                shown, old, {literal_text(value): literal_text(value) for value in values}
            )

    def _spelling(self, name: str) -> str:
        """Attribute name as sites write it, for a name that only sites mention."""
        for site in self._site_pool.sites:
            for text in site.definitions.values():
                found = re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)
                if found:
                    return found.group()
        return name

    def _candidate_values(self) -> dict[str, list[Literal]]:
        """Values to try for the request's attributes, by lower-case name."""
        candidates: dict[str, list[Literal]] = {}
        for conjunct in self._conjuncts:
            for name in conjunct.reach.own:
                if _literal(self._cluster, name) is not None:
                    candidates.setdefault(name, []).extend(self._values_of(conjunct.reach))
        for site in self._site_pool.sites:
            for gate in site.conjuncts():
                values = [*literals_in(gate.text), *_own_values(site.ad, gate.reach)]
                for name in gate.reach.foreign:
                    is_given = name in self._cluster.definitions
                    if not is_given or _literal(self._cluster, name) is not None:
                        candidates.setdefault(name, []).extend(values)
        return {
            name: _values_to_try(values, _literal(self._cluster, name))
            for name, values in candidates.items()
        }

    def _values_of(self, found: Reach) -> list[Literal]:
        """Values in the sites' ads of the attributes that an expression looks up there."""
        values = []
        for site in self._site_pool.sites:
            for name in found.foreign & site.definitions.keys():
                value = evaluate(site.ad.lookup(name), site.ad)
                if is_literal(value):
                    values.append(value)
        return values

    def _literal_changes(self) -> Iterator[NearMiss]:
        for conjunct in self._conjuncts:
            for literal in LITERAL.finditer(conjunct.text):
                old = literal_value(literal)
                if old is None or self._clock() > self._deadline:
                    continue
                values = _values_to_try(self._values_of(conjunct.reach), old)
                start, end = literal.span()
                texts = {
                    literal_text(value): self._requirements_with(
                        conjunct, conjunct.text[:start] + literal_text(value) + conjunct.text[end:]
                    )
                    for value in values
                }
                shown = {key: conjunct.text[:start] + key + conjunct.text[end:] for key in texts}
                yield from self._steps("Requirements", conjunct.text, texts, shown)

    def _dropped_conjuncts(self) -> Iterator[NearMiss]:
        for conjunct in self._conjuncts:
            after = self._after("Requirements", self._requirements_with(conjunct, "true"))
            if after > self._before:
                yield NearMiss("Requirements", conjunct.text, "", self._before, after)

    def _requirements_with(self, replaced: Conjunct, text: str) -> str:
        texts = [text if c is replaced else c.text for c in self._conjuncts]
        return " && ".join(f"({text})" for text in texts)

    def _steps(
        self, attribute: str, old: str, texts: dict[str, str], shown: dict[str, str] | None = None
    ) -> Iterator[NearMiss]:
        """Nearest value with a gain, then those with still larger gains."""
        best, shown_count = self._before, 0
        for key, text in texts.items():
            after = self._after(attribute, text)
            if after > best and shown_count < _MAX_STEPS:
                yield NearMiss(attribute, old, (shown or texts)[key], self._before, after)
                best, shown_count = after, shown_count + 1


def _values_to_try(values: Sequence[Literal], old: Literal | None) -> list[Literal]:
    """Distinct values of the old value's type, nearest first, at most `_MAX_VALUES` or so."""
    distinct: list[Literal] = [value for value in dict.fromkeys(values) if value != old]
    if isinstance(old, bool) or old is None:
        return distinct[:_MAX_VALUES]
    if isinstance(old, str):
        words = [value for value in distinct if isinstance(value, str)][:_MAX_COMPARED]
        words.sort(key=lambda word: -SequenceMatcher(None, old, word).ratio())
        return [*words[:_MAX_VALUES]]
    numbers = [v for v in distinct if isinstance(v, int | float) and not isinstance(v, bool)]
    numbers.sort(key=lambda value: abs(value - old))
    # Evenly among all of them, the nearest and the farthest included.
    step = max(1, -(-len(numbers) // _MAX_VALUES))
    return [*numbers[:-1:step], *numbers[-1:]]


def _literal(cluster: Cluster, name: str) -> Literal | None:
    """Value of an attribute of the request that is a plain literal."""
    if name not in cluster.definitions:
        return None
    found = LITERAL.fullmatch(cluster.definitions[name].strip())
    return None if found is None else literal_value(found)


def _own_values(ad: classad2.ClassAd, found: Reach) -> list[Literal]:
    values = [evaluate(ad.lookup(name), ad) for name in sorted(found.own)]
    return [value for value in values if is_literal(value)]

"""The nearest misses: single changes of a request that would make more sites fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import classad2

from matching.classads import AdError, evaluate, quote
from matching.clusters import Cluster
from matching.conjuncts import Conjunct
from matching.expressions import Reach
from matching.market import Fit, Market, TooExpensive
from matching.negotiation import Bounds, Request
from matching.places import Offer

#: So many values are tried for each attribute, and so many of them are told.
_VALUES_TRIED = 24
_STEPS_TOLD = 3
_MISSES_TOLD = 12
_LITERAL = re.compile(
    r'(?P<string>"(?:\\.|[^"\\])*")|(?<![\w.])(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])'
    r"|\b(?P<truth>true|false)\b",
    re.IGNORECASE,
)
Literal = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Miss:
    """One change, and how many sites fit before and after it.

    `attribute` is the request's attribute that is set from `old` to `new`, both as expressions;
    for Requirements `new` lacks or alters one conjunct, which `old` tells.
    """

    attribute: str
    old: str
    new: str
    before: int
    after: int


def nearest_misses(
    request: Request, offers: Iterable[Offer], now: datetime, *, bounds: Bounds | None = None
) -> tuple[Miss, ...]:
    """Single changes after which more sites fit, whatever these have to do now.

    Tried are: other values for the request's attributes that Requirements of either side refer to,
    other values for literals in its Requirements, and its Requirements without one conjunct. The
    values come from the sites' ads. For each, the nearest value with a gain is told, and those
    with a larger one. A request whose ad cannot be made has none; when the time of `bounds` is up,
    the rest is not tried.
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
        self._market = Market(offers, stopwatch=bounds.stopwatch, request_limit_s=bounds.request_s)
        self._cluster = Cluster(request.wish(now))
        self._conjuncts = self._cluster.conjuncts()
        self._before = self._fitting(self._cluster)

    def misses(self) -> tuple[Miss, ...]:
        """Changes of attributes, then of literals, then Requirements without a conjunct."""
        found = [*self._of_attributes(), *self._of_literals(), *self._of_whole_conjuncts()]
        return tuple(found[:_MISSES_TOLD])

    def _fitting(self, cluster: Cluster) -> int:
        return sum(fit is Fit.WILLING for fit in self._market.assess(cluster))

    def _after(self, attribute: str, expression: str) -> int:
        if self._clock() > self._deadline:
            return 0
        try:
            return self._fitting(self._cluster.changed(attribute, expression))
        except (AdError, TooExpensive):
            return 0

    def _of_attributes(self) -> Iterator[Miss]:
        for name, values in sorted(self._wanted_values().items()):
            definitions = self._cluster.definitions
            old = definitions.get(name, "")
            spelled = next((n for n in self._cluster.ad if n.lower() == name), None)
            shown = spelled or self._spelling(name)
            yield from self._steps(shown, old, {_text(value): _text(value) for value in values})

    def _spelling(self, name: str) -> str:
        """A name that only sites mention, as they write it."""
        for place in self._market.places:
            for text in place.definitions.values():
                found = re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)
                if found:
                    return found.group()
        return name

    def _wanted_values(self) -> dict[str, list[Literal]]:
        """Values worth trying for the request's attributes, by lower-case name."""
        wanted: dict[str, list[Literal]] = {}
        for conjunct in self._conjuncts:
            for name in conjunct.reach.own:
                if _literal(self._cluster, name) is not None:
                    wanted.setdefault(name, []).extend(self._values_of(conjunct.reach))
        for place in self._market.places:
            for gate in place.conjuncts():
                values = [*_literals(gate.text), *_own_values(place.ad, gate.reach)]
                for name in gate.reach.foreign:
                    is_given = name in self._cluster.definitions
                    if not is_given or _literal(self._cluster, name) is not None:
                        wanted.setdefault(name, []).extend(values)
        return {
            name: _tried(values, _literal(self._cluster, name)) for name, values in wanted.items()
        }

    def _values_of(self, found: Reach) -> list[Literal]:
        """What the sites have for the attributes that an expression looks up in their ads."""
        values = []
        for place in self._market.places:
            for name in found.foreign & place.definitions.keys():
                value = evaluate(place.ad.lookup(name), place.ad)
                if _is_literal(value):
                    values.append(value)
        return values

    def _of_literals(self) -> Iterator[Miss]:
        for conjunct in self._conjuncts:
            for literal in _LITERAL.finditer(conjunct.text):
                old = _value(literal)
                if old is None or self._clock() > self._deadline:
                    continue
                values = _tried(self._values_of(conjunct.reach), old)
                start, end = literal.span()
                texts = {
                    _text(value): self._requirements_with(
                        conjunct, conjunct.text[:start] + _text(value) + conjunct.text[end:]
                    )
                    for value in values
                }
                shown = {key: conjunct.text[:start] + key + conjunct.text[end:] for key in texts}
                yield from self._steps("Requirements", conjunct.text, texts, shown)

    def _of_whole_conjuncts(self) -> Iterator[Miss]:
        for conjunct in self._conjuncts:
            after = self._after("Requirements", self._requirements_with(conjunct, "true"))
            if after > self._before:
                yield Miss("Requirements", conjunct.text, "", self._before, after)

    def _requirements_with(self, replaced: Conjunct, text: str) -> str:
        texts = [text if c is replaced else c.text for c in self._conjuncts]
        return " && ".join(f"({text})" for text in texts)

    def _steps(
        self, attribute: str, old: str, texts: dict[str, str], shown: dict[str, str] | None = None
    ) -> Iterator[Miss]:
        """The nearest value with a gain, then those with still larger ones."""
        best, told = self._before, 0
        for key, text in texts.items():
            after = self._after(attribute, text)
            if after > best and told < _STEPS_TOLD:
                yield Miss(attribute, old, (shown or texts)[key], self._before, after)
                best, told = after, told + 1


def _tried(values: Sequence[Literal], old: Literal | None) -> list[Literal]:
    """Distinct values of the kind of the old one, the nearest first, not too many."""
    distinct: list[Literal] = [value for value in dict.fromkeys(values) if value != old]
    if isinstance(old, bool) or old is None:
        return distinct[:_VALUES_TRIED]
    if isinstance(old, str):
        distinct = [value for value in distinct if isinstance(value, str)]
        return distinct[:_VALUES_TRIED]
    numbers = [v for v in distinct if isinstance(v, int | float) and not isinstance(v, bool)]
    numbers.sort(key=lambda value: abs(value - old))
    # Evenly among all of them, the nearest and the farthest included.
    step = max(1, -(-len(numbers) // _VALUES_TRIED))
    return [*numbers[:-1:step], *numbers[-1:]]


def _literal(cluster: Cluster, name: str) -> Literal | None:
    """The value of an attribute of the request that is a plain literal."""
    if name not in cluster.definitions:
        return None
    found = _LITERAL.fullmatch(cluster.definitions[name].strip())
    return None if found is None else _value(found)


def _literals(text: str) -> list[Literal]:
    return [value for found in _LITERAL.finditer(text) if (value := _value(found)) is not None]


def _own_values(ad: classad2.ClassAd, found: Reach) -> list[Literal]:
    values = [evaluate(ad.lookup(name), ad) for name in sorted(found.own)]
    return [value for value in values if _is_literal(value)]


def _is_literal(value: object) -> bool:
    return isinstance(value, str | bool | int | float) and not isinstance(value, classad2.Value)


def _value(found: re.Match[str]) -> Literal | None:
    if found["string"]:
        try:
            return str(classad2.unquote(found["string"]))
        except UnicodeDecodeError:
            return None
    if found["truth"]:
        return found["truth"].lower() == "true"
    text = found["number"]
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def _text(value: Literal) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return quote(value) if isinstance(value, str) else repr(value)

"""Attributes that sites require of requests, and that a request does not set, as a sentence.

Such a request waits for ever, and looks faultless: so its reason names them, with a value that the
sites accept where one is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import classad2

from matching.ads.classads import evaluate, parse_expression
from matching.ads.conjuncts import Conjunct
from matching.ads.literals import Literal, is_literal, literal_text, literals_in
from matching.negotiation.autoclusters import Cluster
from matching.negotiation.cycle_sites import CycleSite

#: Sites asked for all requests of a cycle together: the time is for matches.
_MOST_ASKED = 20_000
#: Values tried for an attribute, different wishes told, names of sites, length of a condition.
_MAX_VALUES = 12
_WISHES_SHOWN = 3
_NAMES_SHOWN = 5
_CONDITION_LENGTH = 200
#: A value that no condition means: where it suits, any value does.
_ANY = '"?"'


@dataclass(frozen=True, slots=True)
class Wanted:
    """Attribute that a site requires: `value` makes its condition true, if one was found."""

    attribute: str
    value: str
    condition: str

    def __str__(self) -> str:
        if self.value:
            return f"{self.attribute} = {self.value}"
        return f"{self.attribute} with {self.condition[:_CONDITION_LENGTH]}"


class Wishes:
    """Attributes that a cycle's sites want of requests; those that look alike share an answer."""

    def __init__(self, sites: Sequence[CycleSite]) -> None:
        self._sites = sites
        self._left = _MOST_ASKED
        self._known: dict[tuple[object, ...], tuple[Wanted, ...]] = {}

    def sentence(self, cluster: Cluster) -> str:
        """Sentences on the sites that refuse a request for what it does not set; '' if none does.

        Also empty when too many were asked before.
        """
        by_wish: dict[tuple[Wanted, ...], list[str]] = {}
        for site in self._sites:
            wanted = self._of_site(site, cluster)
            if wanted is None:
                return ""
            if wanted:
                by_wish.setdefault(wanted, []).append(site.offer.name)
        groups = sorted(by_wish.items(), key=lambda each: (-len(each[1]), each[1]))
        return " ".join(
            f"{self._count(names)} {' and '.join(map(str, wanted))}, which this DAG does not set."
            for wanted, names in groups[:_WISHES_SHOWN]
        )

    def _count(self, names: Sequence[str]) -> str:
        total = len(self._sites)
        if len(names) == total:
            return "The only site requires" if total == 1 else f"All {total} sites require"
        shown = ", ".join(sorted(names)[:_NAMES_SHOWN])
        shown += ", ..." if len(names) > _NAMES_SHOWN else ""
        return f"{len(names)} of {total} sites ({shown}) require{'s' * (len(names) == 1)}"

    def _of_site(self, site: CycleSite, cluster: Cluster) -> tuple[Wanted, ...] | None:
        key = (site.index, *site.view_key(cluster))
        if key not in self._known:
            if self._left <= 0:
                return None
            self._left -= 1
            self._known[key] = tuple(_wanted(site, cluster))
        return self._known[key]


def _wanted(site: CycleSite, cluster: Cluster) -> Iterator[Wanted]:
    for gate in site.gates:
        missing = sorted(gate.reach.foreign - cluster.definitions.keys())
        if missing and evaluate(gate.expression, site.ad, cluster.ad) is not True:
            yield _wish(gate, missing, site, cluster)


def _wish(gate: Conjunct, missing: Sequence[str], site: CycleSite, cluster: Cluster) -> Wanted:
    """The first missing attribute that alone makes the condition true, else the first one."""
    wishes = [_with_value(gate, name, site, cluster) for name in missing]
    return next((wish for wish in wishes if wish.value), wishes[0])


def _with_value(gate: Conjunct, name: str, site: CycleSite, cluster: Cluster) -> Wanted:
    changed = classad2.ClassAd(repr(cluster.ad))

    def suits(text: str) -> bool:
        changed[name] = parse_expression(text)
        return evaluate(gate.expression, site.ad, changed) is True

    texts = [] if suits(_ANY) else list(map(literal_text, _values(gate, site)))
    value = next(filter(suits, texts), "")
    return Wanted(_spelled(name, gate, site), value, gate.text)


def _values(gate: Conjunct, site: CycleSite) -> list[Literal]:
    """Values in the condition, and of the site's attributes that it refers to."""
    own = [evaluate(site.ad.lookup(name), site.ad) for name in sorted(gate.reach.own)]
    values = [*literals_in(gate.text), *filter(is_literal, own), True, False]
    # 1 and true are equal, and different in an ad.
    return [value for _, value in {(type(v), v): v for v in values}.items()][:_MAX_VALUES]


def _spelled(name: str, gate: Conjunct, site: CycleSite) -> str:
    """Name of the attribute as the site writes it."""
    for text in (gate.text, *site.definitions.values()):
        found = re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)
        if found:
            return found.group()
    return name

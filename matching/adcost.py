"""How much an ad can cost to evaluate: a bound that is known before anything is evaluated.

ClassAds have no loops, but an attribute that uses another one ten times, which uses a third ten
times, and so on, makes short text into huge values. The cost of an attribute is the length of its
expression plus the costs of all that it refers to, as often as it does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from matching.classads import MAX_SELECTIONS, AdError, check_nesting

#: What an attribute may cost, in characters that its evaluation can touch.
MAX_COST = 512 * 1024
#: How many attributes may lead to each other in a row.
MAX_REFERENCES = 500
#: What a reference to an attribute of the other ad is taken to cost.
_FOREIGN_COST = 1024

_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?P<call>\s*\()?")
_WORDS = frozenset({"true", "false", "undefined", "error", "is", "isnt", "my", "target"})


def check_cost(attributes: Mapping[str, str]) -> None:
    """Raise AdError, with the attribute, for an ad that costs too much or refers to itself.

    `eval` is refused, because what it refers to cannot be known beforehand.
    """
    if sum(check_nesting(text) for text in attributes.values()) > MAX_SELECTIONS:
        raise AdError(f"the ad has more than {MAX_SELECTIONS} selections (a.b)")
    names = {name.lower(): name for name in attributes}
    references = {name: _references(name, text, names) for name, text in attributes.items()}
    costs: dict[str, int] = {}
    for name in attributes:
        _cost(name, attributes, references, costs, ())


def _references(name: str, text: str, names: Mapping[str, str]) -> list[str | None]:
    """The own attributes that an expression uses, once for each use; None for another ad's."""
    found: list[str | None] = []
    for match in _NAME.finditer(_STRING.sub('""', text)):
        word = match.group().rstrip("( \t\r\n").lower()
        if match["call"]:
            if word == "eval":
                raise AdError(f"{name}: eval cannot be used", attribute=name)
        elif word not in _WORDS:
            found.append(names.get(word))
    return found


def _cost(
    name: str,
    attributes: Mapping[str, str],
    references: Mapping[str, list[str | None]],
    costs: dict[str, int],
    path: tuple[str, ...],
) -> int:
    if name in path:
        circle = " -> ".join([*path[path.index(name) :], name])
        raise AdError(f"attributes refer to each other in a circle: {circle}", attribute=name)
    if len(path) > MAX_REFERENCES:
        message = f"{name}: more than {MAX_REFERENCES} attributes refer to each other in a row"
        raise AdError(message, attribute=name)
    if name not in costs:
        cost = len(attributes[name])
        for reference in references[name]:
            if reference is None:
                cost += _FOREIGN_COST
            else:
                cost += _cost(reference, attributes, references, costs, (*path, name))
            if cost > MAX_COST:
                raise AdError(f"{name}: its evaluation could become too large", attribute=name)
        costs[name] = cost
    return costs[name]

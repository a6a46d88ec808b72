"""Conjuncts of an ad's Requirements, parsed, each with the names it looks up in both ads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import classad2

from matching.ads.classads import parse_expression
from matching.ads.expressions import Reach, reach, split_conjuncts


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One part of `a && b && c`: its text, and the expression that is true where it holds."""

    text: str
    expression: classad2.ExprTree
    reach: Reach


def conjuncts_of(requirements: str | None, definitions: Mapping[str, str]) -> list[Conjunct]:
    """The conjuncts of an ad's Requirements; none where the ad has no Requirements.

    `definitions` are the ad's attributes by lower-case name.
    """
    if requirements is None:
        return []
    texts = split_conjuncts(requirements)
    # Within a conjunction a part counts by what `&&` makes of it.
    shape = "true && ({})" if len(texts) > 1 else "{}"
    return [
        Conjunct(text, parse_expression(shape.format(text)), reach([text], definitions))
        for text in texts
    ]

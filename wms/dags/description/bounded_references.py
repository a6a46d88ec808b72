"""Values of `$$([expression])` within a bound of time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from matching.substitution import Own

#: What the expressions of one DAG may take altogether, in one round of whoever fills them in.
LIMIT_S = 2.0


Evaluate: TypeAlias = Callable[[str, Own], str]


def bounded(evaluator: Evaluate) -> Evaluate:
    """The evaluator, asked once for each text and what it refers to of the job's own ad; raises
    ValueError when all took too long together.

    A single expression takes a second at the most: its cost is bounded before.
    """
    known: dict[tuple[object, ...], str] = {}
    spent_s = 0.0

    def value_of(text: str, own: Own) -> str:
        nonlocal spent_s
        key = text, *own.expressions.items(), *own.values.items()
        if key not in known:
            if spent_s > LIMIT_S:
                raise ValueError(f"its $$([...]) take longer than {LIMIT_S:g} s to evaluate")
            began_s = time.monotonic()
            known[key] = evaluator(text, own)
            spent_s += time.monotonic() - began_s
        return known[key]

    return value_of

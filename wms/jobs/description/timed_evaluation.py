"""Time limit on evaluating all `$$([expression])` of one DAG's jobs, with a cache of results."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from matching.descriptions.substitution import OwnAttributes

#: Seconds that the expressions of one DAG may take together in one round.
TIME_LIMIT_S = 2.0


Evaluate: TypeAlias = Callable[[str, OwnAttributes], str]


def with_time_limit(evaluator: Evaluate) -> Evaluate:
    """Evaluator with a cache and a limit on its total time; raises ValueError beyond the limit.

    A single expression takes a second at most, since its cost is bounded before.
    """
    results: dict[tuple[object, ...], str] = {}
    spent_s = 0.0

    def value_of(text: str, own: OwnAttributes) -> str:
        nonlocal spent_s
        key = text, *own.expressions.items(), *own.values.items()
        if key not in results:
            if spent_s > TIME_LIMIT_S:
                raise ValueError(f"its $$([...]) take longer than {TIME_LIMIT_S:g} s to evaluate")
            began_s = time.monotonic()
            results[key] = evaluator(text, own)
            spent_s += time.monotonic() - began_s
        return results[key]

    return value_of

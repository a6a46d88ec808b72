"""Values of `$$([expression])` within a bound of time."""

from __future__ import annotations

import time
from collections.abc import Callable

#: What the expressions of one DAG may take altogether, in one round of whoever fills them in.
LIMIT_S = 2.0


def bounded(evaluator: Callable[[str], str]) -> Callable[[str], str]:
    """The evaluator, asked once for each text; raises ValueError when all took too long together.

    A single expression takes a second at the most: its cost is bounded before.
    """
    values: dict[str, str] = {}
    spent_s = 0.0

    def value_of(text: str) -> str:
        nonlocal spent_s
        if text not in values:
            if spent_s > LIMIT_S:
                raise ValueError(f"its $$([...]) take longer than {LIMIT_S:g} s to evaluate")
            began_s = time.monotonic()
            values[text] = evaluator(text)
            spent_s += time.monotonic() - began_s
        return values[text]

    return value_of

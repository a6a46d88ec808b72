"""Concurrency limits of DAGs: how much of each is in use in a cycle, and why a DAG has to wait."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from matching.negotiation.unmatched_reasons import Kind, Leftover

#: Limits are sums of decimal numbers, which are not exact.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Limit:
    """A concurrency limit: its maximum and how much is in use."""

    maximum: float
    used: float = 0.0


class LimitsInUse:
    """Limits by name, with what is taken of them. The limits given are not changed."""

    def __init__(self, limits: Mapping[str, Limit]) -> None:
        self._maxima = {name: limit.maximum for name, limit in limits.items()}
        self._used = {name: limit.used for name, limit in limits.items()}

    def take(self, amounts: Mapping[str, float]) -> None:
        """Count what a DAG takes."""
        for name, amount in amounts.items():
            self._used[name] = self._used.get(name, 0.0) + amount

    def exceeded(self, amounts: Mapping[str, float]) -> Leftover | None:
        """Reason why a DAG that takes these amounts has to wait; None if it need not."""
        for name, amount in amounts.items():
            maximum, used = self._maxima.get(name, math.inf), self._used.get(name, 0.0)
            if used + amount > maximum + _ROUNDING:
                text = (
                    f"The DAG takes {amount:g} of the concurrency limit {name}, more than there "
                    f"is ({maximum:g})."
                    if amount > maximum + _ROUNDING
                    else f"The concurrency limit {name} is used up: {used:g} of {maximum:g} in "
                    f"use, the DAG takes {amount:g}."
                )
                return Leftover(Kind.LIMIT, text)
        return None

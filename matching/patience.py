"""A bound in time for work that ends early instead of being given up."""

from __future__ import annotations

from matching.market import Stopwatch


class Patience:
    """Tells when the time for a piece of work is up; without a stopwatch it never is."""

    def __init__(self, stopwatch: Stopwatch | None, limit_s: float) -> None:
        self.limit_s = limit_s
        self._clock = stopwatch or (lambda: 0.0)
        self._latest_s = self._clock() + limit_s

    @property
    def is_over(self) -> bool:
        """True when the time is up."""
        return self._clock() > self._latest_s

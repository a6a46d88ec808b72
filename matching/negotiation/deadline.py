"""Time limit of one evaluation or search, which then returns what it has instead of failing."""

from __future__ import annotations

from matching.negotiation.candidates import Stopwatch


class Deadline:
    """Time limit that begins when it is made; without a stopwatch it never ends."""

    def __init__(self, stopwatch: Stopwatch | None, limit_s: float) -> None:
        self.limit_s = limit_s
        self._clock = stopwatch or (lambda: 0.0)
        self._latest_s = self._clock() + limit_s

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self._clock() > self._latest_s

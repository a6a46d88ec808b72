"""Progress of long work: a line now and then, not for each file."""

from __future__ import annotations

import time
from collections.abc import Callable

from portal.shared.sizes import size

Tell = Callable[[str], None]


class Progress:
    """Counter of objects and bytes, which tells a line every few seconds."""

    def __init__(
        self, what: str, tell: Tell, *, every_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._what, self._tell, self._every_s, self._clock = what, tell, every_s, clock
        self._told_at = clock()
        self.count, self.size_bytes = 0, 0

    def add(self, size_bytes: int, *, count: int = 1) -> None:
        """Count what was done."""
        self.count += count
        self.size_bytes += size_bytes
        now = self._clock()
        if now - self._told_at >= self._every_s:
            self._told_at = now
            self._tell(f"{self._what}: {self}")

    def __str__(self) -> str:
        if self.count:
            return f"{self.count}, {size(self.size_bytes)}"
        return size(self.size_bytes) if self.size_bytes else "at work"

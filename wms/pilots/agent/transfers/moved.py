"""Bytes that a pilot has moved itself for one job: a sum, and whether there is any."""

from __future__ import annotations

from dataclasses import dataclass

_MEGABYTE = 2**20


@dataclass
class Moved:
    """Bytes by direction; None where nothing has begun. Written by the job's thread alone."""

    fetched: int | None = None
    sent: int | None = None

    def add_fetched(self, count: int) -> None:
        """Add bytes of inputs."""
        self.fetched = (self.fetched or 0) + count

    def add_sent(self, count: int) -> None:
        """Add bytes of outputs."""
        self.sent = (self.sent or 0) + count

    def to_json(self) -> dict[str, float]:
        """As heartbeats and reports send it."""
        both = {"fetched_mb": self.fetched, "sent_mb": self.sent}
        return {
            name: round(count / _MEGABYTE, 3) for name, count in both.items() if count is not None
        }

"""Reference to an attempt in messages between pilots and the portal: job and number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AttemptRef:
    """Reference to one attempt in a message."""

    job_id: int
    number: int

"""The names under which pilots and the portal speak of the same thing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AttemptRef:
    """One attempt, as messages name it."""

    job_id: int
    number: int

"""Transitions of a state machine as data (`Transition`), result of a change of many (`Applied`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Transition:
    """One event of a state machine: from which states it leads, and to which."""

    sources: frozenset[str]
    target: str
    needs_reason: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    """Result of a change of many rows: ids that changed, and ids skipped for their state."""

    changed: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)


TransitionTable = Mapping[str, Transition]

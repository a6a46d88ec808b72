"""Bars of negotiation cycles for their list: duration of each phase, in one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wms.dags.models import NegotiationCycle

#: The phases in their order, with the tones of their stretches.
PHASES = (("publish", "wait"), ("read", "next"), ("decide", "go"), ("carry out", "good"))


@dataclass(frozen=True, slots=True)
class Phase:
    """Phase of a negotiation: a stretch of its bar, in percent of the width."""

    name: str
    tone: str
    seconds: float
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class CycleLine:
    """A negotiation cycle with the bar of its phases."""

    cycle: NegotiationCycle
    phases: Sequence[Phase]


def cycle_lines(cycles: Sequence[NegotiationCycle]) -> list[CycleLine]:
    """Negotiation cycles with bars of one scale, so that lengths can be compared."""
    longest = max((cycle.duration_s for cycle in cycles), default=0.0) or 1.0
    return [CycleLine(cycle, _phases(cycle, longest)) for cycle in cycles]


def _phases(cycle: NegotiationCycle, longest_s: float) -> list[Phase]:
    times = (cycle.publish_s, cycle.read_s, cycle.decide_s, cycle.carry_out_s)
    phases, x = [], 0.0
    for (name, tone), seconds in zip(PHASES, times, strict=True):
        width = 100 * seconds / longest_s
        phases.append(Phase(name, tone, seconds, round(x, 2), round(width, 2)))
        x += width
    return phases

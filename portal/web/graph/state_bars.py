"""Stacked bars of node counts by state: their segments, and the same counts as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from portal.shared.state_badges import WORDS, badge_of
from wms.dags.reading.drawing_states import DRAWN

#: From the bottom of a column, or the left of a row, on: what is done first, what waits last.
STACKED = (
    "done", "post_running", "running", "submitted", "pre_running", "ready", "stalled", "held",
    "failed", "futile", "skipped", "waiting",
)  # fmt: skip
#: Their places in `DRAWN`, for the scripts that draw them anew.
STACKED_CODES = tuple(DRAWN.index(state) for state in STACKED)
_THINNEST = 0.015
_HATCHED = frozenset({"next", "go", "bad", "off"})


@dataclass(frozen=True, slots=True)
class BarSegment:
    """Segment of a bar in one state, as a fraction of its length."""

    state: str
    tone: str
    count: int
    start: float
    size: float

    @property
    def fill(self) -> str:
        """Hatching that tells the tone without colour; empty for plain ones."""
        return f"url(#pattern-{self.tone})" if self.tone in _HATCHED else ""


def stretches_of(
    counts: Mapping[str, int], *, length: float, keeps_empty: bool = False
) -> list[BarSegment]:
    """Stretches of a bar of some length; `keeps_empty` makes one for every state.

    A few failed nodes among thousands can be seen: nothing is thinner than a small part.
    """
    total = sum(counts.values()) or 1
    least = length * _THINNEST
    sizes = {s: max(length * counts[s] / total, least) for s in STACKED if counts.get(s)}
    surplus = sum(sizes.values()) - length
    if sizes and surplus > 0:
        widest = max(sizes, key=lambda state: sizes[state])
        sizes[widest] = max(sizes[widest] - surplus, least)
    made, start = [], 0.0
    for state in STACKED:
        size = sizes.get(state, 0.0)
        if size or keeps_empty:
            tone = badge_of(state).tone
            count = counts.get(state, 0)
            made.append(BarSegment(state, tone, count, round(start, 2), round(size, 2)))
        start += size
    return made


def in_words(counts: Mapping[str, int]) -> str:
    """Counts as text: `12 of 30 done, 3 failed, 15 waiting`."""
    total = sum(counts.values())
    parts = [f"{counts.get('done', 0)} of {total} done"]
    parts += [
        f"{counts[state]} {WORDS.get(state, state)}" for state in STACKED[1:] if counts.get(state)
    ]
    return ", ".join(parts)

"""Division of the places of one queue among frontends, by their shares.

What somebody does not ask for goes to the others, in proportion to their shares. Nothing that is
there is taken away: who has more than the share gets nothing new until the others have theirs.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

#: Halvings of the level that is looked for: enough for any number of places.
_STEPS = 64


@dataclass(frozen=True, slots=True)
class Claimant:
    """A frontend that has `held` places of a queue and asks for `more`; `share` is above 0."""

    share: float
    held: int = 0
    more: int = 0

    @property
    def most(self) -> int:
        """Places that it may have in the end."""
        return self.held + self.more

    def at(self, level: float) -> int:
        """Whole places that it has at this level: its share times it, within its bounds."""
        return min(max(int(self.share * level), self.held), self.most)


def divide_places(places: int, claimants: Mapping[str, Claimant]) -> dict[str, int]:
    """Places that each gets beyond what it has, by name; together never more than there are.

    All are raised to one level of places per share (max-min fairness), each at most to what it asks
    for. What is left over by whole numbers goes one by one to whom it raises least; of equals, to
    the first name.
    """
    held = sum(each.held for each in claimants.values())
    asked = sum(each.more for each in claimants.values())
    room = min(max(places - held, 0), asked)
    if not room:
        return dict.fromkeys(claimants, 0)
    level = _level(held + room, claimants)
    total = {name: each.at(level) for name, each in claimants.items()}
    left = held + room - sum(total.values())
    heap = [
        ((total[name] + 1) / each.share, name)
        for name, each in claimants.items()
        if total[name] < each.most
    ]
    heapq.heapify(heap)
    for _ in range(left):
        _, name = heapq.heappop(heap)
        total[name] += 1
        each = claimants[name]
        if total[name] < each.most:
            heapq.heappush(heap, ((total[name] + 1) / each.share, name))
    return {name: total[name] - each.held for name, each in claimants.items()}


def _level(places: int, claimants: Mapping[str, Claimant]) -> float:
    """The highest level at which no more than these places are given, up to a rounding."""
    low, high = 0.0, max(each.most / each.share for each in claimants.values()) + 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if sum(each.at(middle) for each in claimants.values()) <= places:
            low = middle
        else:
            high = middle
    return low

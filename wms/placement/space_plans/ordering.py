"""Order of a DAG's allocations and releases in which no storage's space is exceeded.

What gives space back and may run is taken first, which is never wrong. Of allocations those are
tried first after which space is given back soonest. Where that leads to no end the others are
tried, up to a bound: finding an order is as hard as any problem of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

#: So many states are looked at in the search.
_MOST_STATES: Final = 5_000


@dataclass(frozen=True, slots=True)
class Step:
    """An allocation, with the bytes that it takes, or a release, with what it gives as less than 0.

    It comes `after` other steps, by their places in the sequence.
    """

    storage: int
    taken_bytes: int
    after: frozenset[int]


def ordered(steps: Sequence[Step], space: Mapping[int, int]) -> list[int] | None:
    """Places of the steps in an order that never takes more than a storage's space.

    None where none was found. The steps have to be without a circle.
    """
    return _Search(steps, space).found()


class _Search:
    """Depth-first search over sets of steps that are done, as bits of a number."""

    def __init__(self, steps: Sequence[Step], space: Mapping[int, int]) -> None:
        self._steps, self._free = steps, dict(space)
        self._all = (1 << len(steps)) - 1
        self._before = [sum(1 << each for each in step.after) for step in steps]
        self._takes = sum(1 << n for n, step in enumerate(steps) if step.taken_bytes > 0)
        self._gives = [n for n, step in enumerate(steps) if step.taken_bytes <= 0]
        self._closures = _closures(self._before)
        self._done, self._order = 0, list[int]()
        self._dead: set[int] = set()

    def found(self) -> list[int] | None:
        """An order of all steps."""
        self._give_all()
        choices = [(len(self._order), self._next())]
        while self._done != self._all:
            length, candidates = choices[-1]
            self._undo(length)
            step = next(candidates, None)
            if step is not None:
                self._do(step)
                self._give_all()
                if self._done not in self._dead:
                    choices.append((len(self._order), self._next()))
                continue
            self._dead.add(self._done)
            choices.pop()
            if not choices or len(self._dead) > _MOST_STATES:
                return None
        return self._order

    def _next(self) -> Iterator[int]:
        """Allocations that may come next and have room, the best first."""
        done = self._done
        seen = 0
        needs = [
            (each.bit_count(), each)
            for give in self._gives
            if not done >> give & 1 and (each := self._closures[give] & self._takes & ~done)
        ]
        for _, closure in [*sorted(needs), (0, self._takes & ~done)]:
            new = closure & ~seen
            seen |= new
            for step in _bits(new):
                if not self._before[step] & ~done and self._has_room(step):
                    yield step

    def _has_room(self, step: int) -> bool:
        wanted = self._steps[step]
        return wanted.taken_bytes <= self._free.get(wanted.storage, 0)

    def _give_all(self) -> None:
        """Do all releases that may come now, also those that others lead to."""
        was = -1
        while was != self._done:
            was = self._done
            for step in self._gives:
                if not self._done >> step & 1 and not self._before[step] & ~self._done:
                    self._do(step)

    def _do(self, step: int) -> None:
        self._order.append(step)
        self._done |= 1 << step
        self._free[self._steps[step].storage] = (
            self._free.get(self._steps[step].storage, 0) - self._steps[step].taken_bytes
        )

    def _undo(self, length: int) -> None:
        while len(self._order) > length:
            step = self._order.pop()
            self._done &= ~(1 << step)
            self._free[self._steps[step].storage] += self._steps[step].taken_bytes


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def _closures(before: Sequence[int]) -> list[int]:
    """Steps that come before each step, and itself."""
    found: dict[int, int] = {}
    for first in range(len(before)):
        stack = [first]
        while stack:
            step = stack[-1]
            missing = [each for each in _bits(before[step]) if each not in found]
            if missing:
                stack += missing
                continue
            made = 1 << step
            for each in _bits(before[step]):
                made |= found[each]
            found[step] = made
            stack.pop()
    return [found[each] for each in range(len(before))]

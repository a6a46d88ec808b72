"""Largest of several needs: a queue that meets each of them meets all.

Of needs that differ in amounts alone, those that ask for no more than others are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from matching.task_queues.needs import Needs

_AMOUNTS = ("cpu_time_s", "cores", "memory_mb", "gpus", "disk_mb")
#: Needs are compared with so many larger ones at most, as all could be different.
_MOST_COMPARED = 100
#: With these amounts nothing is asked for.
_LEAST = {"cpu_time_s": 0, "cores": 1, "max_cores": 1, "memory_mb": 0, "gpus": 0, "disk_mb": 0}


def largest_needs(needs: Iterable[Needs]) -> list[Needs]:
    """The needs that are not met wherever another one of them is, in their order.

    Where very many differ, some more are kept. Needs with a requirements expression, which may look
    at their amounts, are all kept.
    """
    groups: dict[Needs, list[Needs]] = defaultdict(list)
    for each in needs:
        groups[each if each.requirements else _without_amounts(each)].append(each)
    kept = {each for alike in groups.values() for each in _largest(alike)}
    return [each for alike in groups.values() for each in alike if each in kept]


def _without_amounts(needs: Needs) -> Needs:
    """Rest of needs without their amounts, and without what no queue looks at."""
    return replace(needs, job_type="", limits=(), **_LEAST)  # type: ignore[arg-type]


def _largest(alike: Iterable[Needs]) -> list[Needs]:
    largest: list[tuple[int, ...]] = []
    kept = []
    for needs in sorted(alike, key=_amounts, reverse=True):
        amounts = _amounts(needs)
        if not any(_covers(larger, amounts) for larger in largest[:_MOST_COMPARED]):
            largest.append(amounts)
            kept.append(needs)
    return kept


def _amounts(needs: Needs) -> tuple[int, ...]:
    return tuple(getattr(needs, name) for name in _AMOUNTS)


def _covers(larger: tuple[int, ...], smaller: tuple[int, ...]) -> bool:
    return all(more >= less for more, less in zip(larger, smaller, strict=True))

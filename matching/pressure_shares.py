"""Which queue's pilots the waiting jobs are for: each job counts once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from matching.pressure import SlotState, SmallestRequest, exact_share, usable_slot
from matching.rooms import Room, pilots_for, place

#: Start rates are parts of this.
_RATE_UNIT = 1000


@dataclass(frozen=True, slots=True)
class JobGroup:
    """Equal jobs that fit the same queues; `old_jobs` of them have waited for long."""

    size: Room
    jobs: int
    queues: tuple[str, ...]
    old_jobs: int = 0
    priority: float = 1.0


@dataclass(slots=True)
class QueueOffer:
    """What a queue has for waiting jobs.

    `places` are the fresh pilots that its limits leave, `waiting` the pilots that have not called
    in, `started` those that did lately; `idle` counts the rooms of running pilots by what is free.
    `max_pilots` is its size when it is full.
    """

    fresh: Room
    places: int
    max_pilots: int
    waiting: int = 0
    started: int = 0
    idle: Counter[Room] = field(default_factory=Counter)

    @property
    def start_rate(self) -> int:
        """What part of its pilots start, in thousandths: all of them until it is known better.

        Never nothing: where only such queues have places, they get the jobs.
        """
        return max(1, _RATE_UNIT * (self.started + 1) // (self.started + self.waiting + 1))

    @property
    def free_cores(self) -> int:
        """The cores of all pilots that are free or may still be sent."""
        idle = sum(room.cores * pilots for room, pilots in self.idle.items())
        return (max(self.places, 0) + self.waiting) * self.fresh.cores + idle


@dataclass(slots=True)
class Need:
    """A queue's share of the waiting jobs, by size, and what of it needs pilots.

    `pilots` are those that the jobs fill which find no place in running pilots, `old_pilots` the
    part of them for old jobs; `usable` running pilots could take a waiting job.
    """

    jobs: Counter[Room] = field(default_factory=Counter)
    old_jobs: int = 0
    usable: int = 0
    pilots: int = 0
    old_pilots: int = 0
    priority: float = 0.0

    @property
    def total_jobs(self) -> int:
        """All jobs of the share."""
        return self.jobs.total()


def share_out(groups: Iterable[JobGroup], offers: Mapping[str, QueueOffer]) -> dict[str, Need]:
    """Share all jobs exactly, in proportion to free places and start rate.

    Groups of higher priority, then larger ones, choose first. Jobs for which no queue has a free
    place are shared in proportion to the size of the queues: what is wanted beyond the limits.
    """
    needs = {name: Need() for name in offers}
    sharing = _Sharing(offers)
    for group in sorted(groups, key=lambda group: (-group.priority, -group.jobs, group.queues)):
        given = sharing.share(group)
        old = exact_share(min(group.old_jobs, group.jobs), given).share
        for name, jobs in given.items():
            need = needs[name]
            need.jobs[group.size] += jobs
            need.old_jobs += old[name]
            need.priority += group.priority * jobs
    for name, need in needs.items():
        if need.jobs:
            _count_pilots(need, offers[name])
    return needs


class _Sharing:
    """What is still free at each queue while jobs are shared out."""

    def __init__(self, offers: Mapping[str, QueueOffer]) -> None:
        self._offers = offers
        self._free = {name: offer.free_cores for name, offer in offers.items()}
        self._rates = {name: offer.start_rate for name, offer in offers.items()}
        self._rooms = {name: offer.fresh for name, offer in offers.items()}
        self._costs: dict[Room, dict[str, int]] = {}

    def share(self, group: JobGroup) -> dict[str, int]:
        """The group's jobs by queue, those without any left out."""
        costs, free, rates = self._costs_of(group.size), self._free, self._rates
        given: dict[str, int] = defaultdict(int)
        left = group.jobs
        while left:
            places = {name: free[name] // costs[name] for name in group.queues}
            weights = {name: places[name] * rates[name] for name in group.queues if places[name]}
            if not weights:
                break
            for name, jobs in exact_share(left, weights).share.items():
                taken = min(jobs, places[name])
                if taken:
                    given[name] += taken
                    free[name] -= taken * costs[name]
                    left -= taken
        if left:
            sizes = {name: max(self._offers[name].max_pilots, 1) for name in group.queues}
            for name, jobs in exact_share(left, sizes).share.items():
                if jobs:
                    given[name] += jobs
        return given

    def _costs_of(self, size: Room) -> dict[str, int]:
        """The cores that one job of this size takes up in a fresh pilot of each queue.

        More than its own where memory or GPUs leave place for fewer jobs than cores do.
        """
        if size not in self._costs:
            by_room = {
                room: max(-(-room.cores // max(room.holds(size), 1)), size.cores)
                for room in set(self._rooms.values())
            }
            self._costs[size] = {name: by_room[room] for name, room in self._rooms.items()}
        return self._costs[size]


def _count_pilots(need: Need, offer: QueueOffer) -> None:
    smallest = _smallest(need.jobs)
    idle = Counter(
        {room: count for room, count in offer.idle.items() if _is_usable(room, smallest)}
    )
    need.usable = idle.total()
    rest: Counter[Room] = Counter()
    # The large ones first: they find fewer gaps.
    for size, jobs in sorted(need.jobs.items(), key=lambda item: offer.fresh.holds(item[0])):
        rest[size] = jobs - place(size, jobs, idle)
    need.pilots = pilots_for(rest, offer.fresh)
    need.old_pilots = need.pilots * need.old_jobs // need.total_jobs


def _is_usable(room: Room, smallest: SmallestRequest) -> bool:
    slot = SlotState(room.cores, room.memory_mb, room.gpus, seconds_to_retire=room.time_s)
    return usable_slot(slot, smallest).usable


def _smallest(jobs: Mapping[Room, int]) -> SmallestRequest:
    sizes: Sequence[Room] = [size for size, count in jobs.items() if count]
    return SmallestRequest(
        cores=min(size.cores for size in sizes),
        memory_mb=min(size.memory_mb for size in sizes),
        gpus=min(size.gpus for size in sizes),
        walltime=min(size.time_s for size in sizes),
    )

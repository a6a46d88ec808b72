"""Shares of queues in the waiting jobs, each job counted once, and the pilots these need."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from matching.pressure.capacity import ResourceVector, pack_jobs, pilots_for
from matching.pressure.formulas import SlotState, SmallestRequest, exact_share, usable_slot

#: Start rates are parts of this.
_RATE_UNIT = 1000


@dataclass(frozen=True, slots=True)
class JobGroup:
    """Equal jobs that fit the same queues; `old_jobs` of them have waited for long."""

    size: ResourceVector
    jobs: int
    queues: tuple[str, ...]
    old_jobs: int = 0
    priority: float = 1.0


@dataclass(slots=True)
class QueueOffer:
    """Capacity of a queue for waiting jobs.

    `places` are the fresh pilots that its limits leave, `waiting` the pilots that have not called
    in, `started` those that did lately; `idle` counts running pilots by their free resources.
    `max_pilots` is the size of the queue when it is full.
    """

    fresh: ResourceVector
    places: int
    max_pilots: int
    waiting: int = 0
    started: int = 0
    idle: Counter[ResourceVector] = field(default_factory=Counter)

    @property
    def start_rate(self) -> int:
        """Part of its pilots that start, in thousandths; all of them while nothing is known.

        At least 1: where only such queues have free places, they get the jobs.
        """
        return max(1, _RATE_UNIT * (self.started + 1) // (self.started + self.waiting + 1))

    @property
    def free_cores(self) -> int:
        """Free cores of all pilots, those included that may still be sent."""
        idle = sum(capacity.cores * pilots for capacity, pilots in self.idle.items())
        return (max(self.places, 0) + self.waiting) * self.fresh.cores + idle


@dataclass(slots=True)
class Need:
    """Share of a queue in the waiting jobs, by size, and the pilots needed for it.

    `pilots` are needed for jobs that fit into no running pilot, `old_pilots` the part of them for
    old jobs; `usable` running pilots could take a waiting job.
    """

    jobs: Counter[ResourceVector] = field(default_factory=Counter)
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
    """Jobs divided exactly among queues, in proportion to free places and start rate.

    Groups of higher priority, then larger ones, choose first. Jobs for which no queue has a free
    place are divided in proportion to the size of the queues: they count as need beyond the limits.
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
    """Free cores of each queue while jobs are shared out."""

    def __init__(self, offers: Mapping[str, QueueOffer]) -> None:
        self._offers = offers
        self._free = {name: offer.free_cores for name, offer in offers.items()}
        self._rates = {name: offer.start_rate for name, offer in offers.items()}
        self._capacities = {name: offer.fresh for name, offer in offers.items()}
        self._costs: dict[ResourceVector, dict[str, int]] = {}

    def share(self, group: JobGroup) -> dict[str, int]:
        """The group's jobs by queue, without queues that get none."""
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

    def _costs_of(self, size: ResourceVector) -> dict[str, int]:
        """Cores that one job of this size takes up in a fresh pilot of each queue.

        More than its own where memory or GPUs limit the number of jobs before cores do.
        """
        if size not in self._costs:
            by_capacity = {
                capacity: max(-(-capacity.cores // max(capacity.fit_count(size), 1)), size.cores)
                for capacity in set(self._capacities.values())
            }
            self._costs[size] = {
                name: by_capacity[capacity] for name, capacity in self._capacities.items()
            }
        return self._costs[size]


def _count_pilots(need: Need, offer: QueueOffer) -> None:
    smallest = _smallest(need.jobs)
    idle = Counter(
        {
            capacity: count
            for capacity, count in offer.idle.items()
            if _is_usable(capacity, smallest)
        }
    )
    need.usable = idle.total()
    rest: Counter[ResourceVector] = Counter()
    # The large ones first: they find fewer gaps.
    for size, jobs in sorted(need.jobs.items(), key=lambda item: offer.fresh.fit_count(item[0])):
        rest[size] = jobs - pack_jobs(size, jobs, idle)
    need.pilots = pilots_for(rest, offer.fresh)
    need.old_pilots = need.pilots * need.old_jobs // need.total_jobs


def _is_usable(capacity: ResourceVector, smallest: SmallestRequest) -> bool:
    slot = SlotState(
        capacity.cores, capacity.memory_mb, capacity.gpus, seconds_to_retire=capacity.time_s
    )
    return usable_slot(slot, smallest).usable


def _smallest(jobs: Mapping[ResourceVector, int]) -> SmallestRequest:
    sizes: Sequence[ResourceVector] = [size for size, count in jobs.items() if count]
    return SmallestRequest(
        cores=min(size.cores for size in sizes),
        memory_mb=min(size.memory_mb for size in sizes),
        gpus=min(size.gpus for size in sizes),
        walltime=min(size.time_s for size in sizes),
    )

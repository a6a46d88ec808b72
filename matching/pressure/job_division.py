"""Division of waiting jobs among queues, each job counted once, and the pilots they then need.

Jobs of higher priority choose first. Where pilots have owners, the need is also divided by whose
jobs they are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from matching.pressure.capacity import ResourceVector, pack_jobs, pilots_for
from matching.pressure.formulas import SlotState, SmallestRequest, exact_share, usable_slot

#: Start rates are parts of this.
_RATE_UNIT = 1000


#: Whose jobs a private pilot takes: ids of a group, or 0, and of an owner, or 0 where its members
#: share their jobs.
Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class JobGroup:
    """Equal jobs that fit the same queues; `old_jobs` of them have waited for long.

    `identity` is whose they are, and `share` the sum of their TaskQueues' priorities: known where
    one of the queues has pilots of many owners.
    """

    size: ResourceVector
    jobs: int
    queues: tuple[str, ...]
    old_jobs: int = 0
    priority: float = 1.0
    identity: Identity | None = None
    share: float = 0.0


@dataclass(slots=True)
class QueueOffer:
    """Capacity of a queue for waiting jobs.

    `places` are the fresh pilots that its limits leave, `waiting` the pilots that have not called
    in, `started` those that did lately; `idle` counts running pilots by their free resources.
    `max_pilots` is the size of the queue when it is full. Where `has_owners` each pilot takes the
    jobs of one identity only: `waiting_of` and `idle_of` have them by it, `idle` none.
    """

    fresh: ResourceVector
    places: int
    max_pilots: int
    waiting: int = 0
    started: int = 0
    idle: Counter[ResourceVector] = field(default_factory=Counter)
    has_owners: bool = False
    waiting_of: Mapping[Identity, int] = field(default_factory=dict)
    idle_of: Mapping[Identity, Counter[ResourceVector]] = field(default_factory=dict)

    @property
    def start_rate(self) -> int:
        """Part of its pilots that start, in thousandths; all of them while nothing is known.

        At least 1: where only such queues have free places, they get the jobs.
        """
        return max(1, _RATE_UNIT * (self.started + 1) // (self.started + self.waiting + 1))

    @property
    def free_cores(self) -> int:
        """Free cores of all pilots, those included that may still be sent.

        Those of pilots that belong to somebody are left out.
        """
        waiting = 0 if self.has_owners else self.waiting
        return (max(self.places, 0) + waiting) * self.fresh.cores + _cores(self.idle)

    @property
    def all_cores(self) -> int:
        """Free cores of all pilots, whosever they are."""
        if not self.has_owners:
            return self.free_cores
        idle = sum(_cores(rooms) for rooms in self.idle_of.values())
        return self.free_cores + self.waiting * self.fresh.cores + idle

    def free_cores_of(self, identity: Identity | None) -> int:
        """Free cores of the pilots that belong to this identity."""
        if identity is None or not self.has_owners:
            return 0
        waiting = self.waiting_of.get(identity, 0)
        return waiting * self.fresh.cores + _cores(self.idle_of.get(identity, {}))


def _cores(rooms: Mapping[ResourceVector, int]) -> int:
    return sum(capacity.cores * pilots for capacity, pilots in rooms.items())


@dataclass(slots=True)
class OwnNeed:
    """The part of a queue's need that one identity has; `share` as in `JobGroup`."""

    jobs: Counter[ResourceVector] = field(default_factory=Counter)
    pilots: int = 0
    share: float = 0.0


@dataclass(slots=True)
class Need:
    """Share of a queue in the waiting jobs, by size, and the pilots needed for it.

    `pilots` are needed for jobs that fit into no running pilot, `old_pilots` the part of them for
    old jobs; `usable` running pilots could take a waiting job. `by_identity` has its parts where
    pilots have owners.
    """

    jobs: Counter[ResourceVector] = field(default_factory=Counter)
    old_jobs: int = 0
    usable: int = 0
    pilots: int = 0
    old_pilots: int = 0
    priority: float = 0.0
    by_identity: dict[Identity, OwnNeed] = field(default_factory=dict)

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
            if offers[name].has_owners and group.identity is not None:
                own = need.by_identity.setdefault(group.identity, OwnNeed())
                own.jobs[group.size] += jobs
                own.share += group.share * jobs / group.jobs
    for name, need in needs.items():
        if need.jobs:
            _count_pilots(need, offers[name])
    return needs


class _Sharing:
    """Free cores of each queue while jobs are shared out."""

    def __init__(self, offers: Mapping[str, QueueOffer]) -> None:
        self._offers = offers
        self._free = {name: offer.free_cores for name, offer in offers.items()}
        self._all = {name: offer.all_cores for name, offer in offers.items()}
        self._own: dict[tuple[str, Identity | None], int] = {}
        self._rates = {name: offer.start_rate for name, offer in offers.items()}
        self._capacities = {name: offer.fresh for name, offer in offers.items()}
        self._costs: dict[ResourceVector, dict[str, int]] = {}

    def share(self, group: JobGroup) -> dict[str, int]:
        """The group's jobs by queue, without queues that get none."""
        costs, rates = self._costs_of(group.size), self._rates
        given: dict[str, int] = defaultdict(int)
        left = group.jobs
        while left:
            places = {
                name: self._free_for(name, group.identity) // costs[name] for name in group.queues
            }
            weights = {
                name: max(self._all[name] // costs[name], 1) * rates[name]
                for name in group.queues
                if places[name]
            }
            if not weights:
                break
            for name, jobs in exact_share(left, weights).share.items():
                taken = min(jobs, places[name])
                if taken:
                    given[name] += taken
                    self._take(name, group.identity, taken * costs[name])
                    left -= taken
        if left:
            sizes = {name: max(self._offers[name].max_pilots, 1) for name in group.queues}
            for name, jobs in exact_share(left, sizes).share.items():
                if jobs:
                    given[name] += jobs
        return given

    def _free_for(self, name: str, identity: Identity | None) -> int:
        own = self._own.setdefault((name, identity), self._offers[name].free_cores_of(identity))
        return self._free[name] + own

    def _take(self, name: str, identity: Identity | None, cores: int) -> None:
        """Take cores of the pilots that are the identity's own first."""
        own = min(self._own[name, identity], cores)
        self._own[name, identity] -= own
        self._free[name] -= cores - own
        self._all[name] -= cores

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
    if offer.has_owners:
        for identity, own in need.by_identity.items():
            idle = offer.idle_of.get(identity, Counter())
            usable, own.pilots = _packed(own.jobs, idle, offer.fresh)
            need.usable += usable
            need.pilots += own.pilots
    else:
        need.usable, need.pilots = _packed(need.jobs, offer.idle, offer.fresh)
    need.old_pilots = need.pilots * need.old_jobs // need.total_jobs


def _packed(
    jobs: Mapping[ResourceVector, int], rooms: Mapping[ResourceVector, int], fresh: ResourceVector
) -> tuple[int, int]:
    """Running pilots that could take one of these jobs, and fresh ones for what is left over."""
    smallest = _smallest(jobs)
    idle = Counter(
        {capacity: count for capacity, count in rooms.items() if _is_usable(capacity, smallest)}
    )
    usable = idle.total()
    rest: Counter[ResourceVector] = Counter()
    # The large ones first: they find fewer gaps.
    for size, count in sorted(jobs.items(), key=lambda item: fresh.fit_count(item[0])):
        rest[size] = count - pack_jobs(size, count, idle)
    return usable, pilots_for(rest, fresh)


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

"""Waiting jobs that no pilot is sent for yet, as the director goes from queue to queue."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import classad2

from matching.needs import Needs
from matching.pressure import Room, place
from matching.resources import Resource, pilot_ad, requirements_value
from wms.taskqueues.selectors import Demand

#: What an expression may say of who submitted the job. Found too often is no harm.
_NAMES_SUBMITTER = re.compile("owner|accountinggroup", re.IGNORECASE)
#: No site has this name.
_ANYWHERE = ""


@dataclass(slots=True)
class Waiting:
    """What waits in one TaskQueue and is not served yet."""

    needs: Needs
    jobs: int


@dataclass(slots=True)
class Kind:
    """TaskQueues that every queue for everybody takes, or refuses, alike."""

    needs: Needs
    waiting: list[Waiting] = field(default_factory=list)


class Kinds:
    """The demand by kinds: there are far fewer of them than TaskQueues, if users are many."""

    def __init__(self, demands: Iterable[Demand]) -> None:
        kinds: dict[Needs, Kind] = {}
        for demand in demands:
            alike = _what_decides(demand.needs)
            kind = kinds.setdefault(alike, Kind(alike))
            kind.waiting.append(Waiting(demand.needs, demand.waiting_jobs))
        # Most jobs are for one site: what is for others need not be looked at.
        self._by_site: dict[str, list[Kind]] = defaultdict(list)
        for kind in kinds.values():
            for site in kind.needs.sites or (_ANYWHERE,):
                self._by_site[site].append(kind)
        #: The CPU times that the jobs need, in ascending order.
        self.times_s = sorted({needs.cpu_time_s for needs in kinds})

    def at(self, site: str) -> list[Kind]:
        """The kinds that are not for other sites only."""
        return [*self._by_site.get(_ANYWHERE, ()), *self._by_site.get(site, ())]


def _what_decides(needs: Needs) -> Needs:
    """The needs without what no queue for everybody looks at."""
    if not needs.requirements:
        return replace(needs, owner="", owner_group="", job_type="", max_cores=needs.cores)
    if _NAMES_SUBMITTER.search(needs.requirements):
        return needs
    return replace(needs, owner="", owner_group="")


@dataclass(frozen=True, slots=True)
class Unserved:
    """The unserved jobs that one queue's pilots could run, by what they take of a pilot.

    What is put into pilots here is served for the queues that come after, too.
    """

    by_size: Mapping[Room, list[Waiting]]

    @classmethod
    def by(cls, offer: Resource, kinds: Kinds) -> Unserved:
        """What the pilots of a queue with this offer are sent for."""
        for_all = replace(offer, owner="", owner_groups=(), excluded=())
        ad = pilot_ad(offer, {})
        by_size: dict[Room, list[Waiting]] = defaultdict(list)
        for kind in kinds.at(offer.site):
            if _is_refused(for_all, kind.needs, ad):
                continue
            by_size[_size(kind.needs)] += [
                each for each in kind.waiting if each.jobs and _is_for(offer, each)
            ]
        return cls(by_size)

    def count(self) -> int:
        """How many jobs there are."""
        return sum(self.sizes().values())

    def sizes(self) -> dict[Room, int]:
        """How many jobs there are of each size."""
        return {size: sum(each.jobs for each in some) for size, some in self.by_size.items()}

    def put_into(self, free: Counter[Room]) -> None:
        """Count jobs as served that find place in what is free; `free` keeps the rest."""
        for size, jobs in self.sizes().items():
            if not free:
                return
            served = place(size, jobs, free)
            for each in self.by_size[size]:
                taken = min(served, each.jobs)
                each.jobs -= taken
                served -= taken


def _size(needs: Needs) -> Room:
    return Room(needs.cores, needs.memory_mb, needs.gpus, needs.cpu_time_s)


def _is_refused(offer: Resource, needs: Needs, ad: classad2.ClassAd) -> bool:
    """As `matching.resources.offer_refusal`, with the queue's ad made once for all needs."""
    return bool(offer.sending_refusal(needs)) or requirements_value(needs, ad) is False


def _is_for(offer: Resource, waiting: Waiting) -> bool:
    """Whether the queue is for who submitted this, and no limit keeps its kind from starting."""
    is_for_all = offer.pilot_type != "private" and not offer.excluded
    return is_for_all or not offer.refusal(waiting.needs)

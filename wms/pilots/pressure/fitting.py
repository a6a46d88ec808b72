"""Fit of waiting jobs to queues: which queues' pilots may be sent for which needs, and why none.

What decides is `Resource.sending_refusal`, asked aspect by aspect: there are far fewer different
amounts, places or tags than TaskQueues, and fewer different offers than queues. Also groups of
equal waiting jobs that fit the same queues, the director's demand.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from operator import or_
from typing import Any

import classad2

from matching.ads.expressions import references
from matching.pressure.capacity import ResourceVector
from matching.pressure.job_division import Identity, JobGroup
from matching.task_queues.needs import Needs
from matching.task_queues.requirements import (
    OfferAd,
    offer_ads,
    offer_refusal,
    requirements_refusal,
)
from matching.task_queues.resources import (
    NEEDS_ATTRIBUTES,
    PILOT_ATTRIBUTES,
    Resource,
    needs_ad,
    pilot_ad,
)
from matching.task_queues.start_expressions import Part, parts_of
from wms.taskqueues.selectors import Demand

#: Functions that make an expression of a text, and ads as a whole: all attributes may count.
_MAKES_NAMES = re.compile(r"eval|unparse", re.IGNORECASE)
_WHOLE_ADS = frozenset({"my", "target", "self", "parent", "root", "toplevel"})
#: Number of the largest TaskQueues that give the reasons why none fits a queue.
_ASKED_WHY = 20
_TOLD = 3


@dataclass(frozen=True, slots=True)
class _Aspect:
    """Fields of needs and offers that are decided apart from all others.

    Where `is_any` an offer meets a list of words if it meets one of them.
    """

    needs: tuple[str, ...]
    offer: tuple[str, ...]
    is_any: bool = False


#: Together they have every field that `Resource.sending_refusal` reads.
_ASPECTS = (
    _Aspect(
        ("cpu_time_s", "cores", "memory_mb", "gpus", "disk_mb"),
        ("cpu_time_s", "cores", "memory_mb", "gpus", "disk_mb"),
    ),
    _Aspect(("setup", "platforms"), ("setup", "platform")),
    _Aspect(("sites",), ("site",), is_any=True),
    _Aspect(("banned_sites",), ("site",)),
    _Aspect(("queues",), ("queue",), is_any=True),
    _Aspect(("submit_pools", "middlewares"), ("submit_pool", "middleware")),
    _Aspect(("tags",), ("tags", "required_tags")),
    _Aspect(
        ("pilot_types", "owner", "owner_group"),
        (
            "pilot_type",
            "owner",
            "owner_groups",
            "foreign_groups",
            "refused_owners",
            "refused_groups",
        ),
    ),
    _Aspect(("job_type", "owner_group", "limits"), ("excluded",)),
)
#: Amounts of an offer that leaves everything open but the fields of one aspect.
_OPEN: dict[str, Any] = {
    "site": "",
    "cpu_time_s": 2**31,
    "cores": 2**31,
    "memory_mb": 2**31,
    "gpus": 2**31,
}


@dataclass(slots=True)
class _Required:
    """Known results of one expression: the queues asked, and those where it is false."""

    asked: int = 0
    refused: int = 0


class QueueMatcher:
    """Offers of queues by name, each a bit in a mask."""

    def __init__(self, offers: Mapping[str, Resource]) -> None:
        self.names = tuple(offers)
        self._offers = tuple(offers.values())
        self._all = (1 << len(offers)) - 1
        self._ads: dict[int, tuple[OfferAd, ...]] = {}
        self._masks: list[dict[tuple[Any, ...], int]] = [{} for _ in _ASPECTS]
        self._required: dict[tuple[Any, ...], _Required] = {}
        self._groups_by_names: dict[tuple[str, ...], list[int]] = {}
        self._groups = [self._grouped(aspect) for aspect in _ASPECTS]
        self._starts = StartRefusals(self._offers)

    def _grouped(self, aspect: _Aspect) -> list[tuple[Resource, int]]:
        """Different offers as to this aspect, with the mask of the queues that make each."""
        masks: dict[tuple[Any, ...], int] = defaultdict(int)
        for bit, offer in enumerate(self._offers):
            masks[tuple(getattr(offer, name) for name in aspect.offer)] |= 1 << bit
        return [
            (Resource(**(_OPEN | dict(zip(aspect.offer, values, strict=True)))), mask)
            for values, mask in masks.items()
        ]

    def mask(self, needs: Needs) -> int:
        """Mask of the queues whose pilots may be sent for these needs."""
        mask = self._all
        for place, aspect in enumerate(_ASPECTS):
            key = tuple([getattr(needs, name) for name in aspect.needs])
            part = self._masks[place].get(key)
            mask &= self._part(place, key) if part is None else part
            if not mask:
                return 0
        mask &= ~self._starts.refused(needs, mask)
        return mask & ~self._refused_by_requirements(needs, mask) if needs.requirements else mask

    def _part(self, place: int, key: tuple[Any, ...]) -> int:
        """Mask of the queues that do not refuse needs of which only this aspect is known."""
        aspect = _ASPECTS[place]
        mask = 0
        if aspect.is_any and len(key[0]) > 1:
            for word in key[0]:
                alone = ((word,),)
                known = self._masks[place].get(alone)
                mask |= self._part(place, alone) if known is None else known
        else:
            values: dict[str, Any] = {"owner": "", **dict(zip(aspect.needs, key, strict=True))}
            needs = Needs(**values)
            for offer, part in self._groups[place]:
                mask |= 0 if offer.sending_refusal(needs) else part
        self._masks[place][key] = mask
        return mask

    def _refused_by_requirements(self, needs: Needs, mask: int) -> int:
        """Queues at which no pilot meets the requirements, among those of the mask at least.

        They are asked once for all ads that are equal in what the expression looks at.
        """
        names = _looked_at(needs.requirements)
        own = needs_ad(needs)
        key = (needs.requirements, tuple(_values(own, names)))
        known = self._required.setdefault(key, _Required())
        for group in self._alike(names):
            if group & mask & ~known.asked:
                known.asked |= group
                if requirements_refusal(self._ads_of(_lowest(group)), needs):
                    known.refused |= group
        return known.refused

    def _alike(self, names: tuple[str, ...]) -> Collection[int]:
        """Masks of the queues whose ads are equal in these attributes."""
        if names not in self._groups_by_names:
            groups: dict[frozenset[tuple[str, ...]], int] = defaultdict(int)
            for bit in range(len(self._offers)):
                groups[frozenset(_shown(each, names) for each in self._ads_of(bit))] |= 1 << bit
            self._groups_by_names[names] = list(groups.values())
        return self._groups_by_names[names]

    def _ads_of(self, bit: int) -> tuple[OfferAd, ...]:
        if bit not in self._ads:
            self._ads[bit] = offer_ads(self._offers[bit])
        return self._ads[bit]

    def queues(self, mask: int) -> tuple[str, ...]:
        """Names of the queues in a mask."""
        return tuple([self.names[bit] for bit in _bits(mask)])


class StartRefusals:
    """Queues at which the start expression of a frontend refuses jobs, by their needs."""

    def __init__(self, offers: Sequence[Resource]) -> None:
        self._offers = offers
        self._with: dict[Part, int] = defaultdict(int)
        for bit, offer in enumerate(offers):
            for text in offer.start:
                for part in parts_of(text):
                    self._with[part] |= 1 << bit
        self._alike: dict[Part, list[tuple[classad2.ClassAd, int]]] = {}
        self._refused: dict[tuple[Part, tuple[Any, ...]], int] = {}

    def refused(self, needs: Needs, mask: int) -> int:
        """Mask of the queues that refuse them, of those in the mask at least.

        A part of an expression is evaluated once for all queues, and for all needs, that are equal
        in what it looks at.
        """
        refused = 0
        for part, queues in self._with.items():
            if queues & mask & ~refused:
                key = (part, part.values(needs))
                known = self._refused.get(key)
                refused |= self._evaluated(key, needs) if known is None else known
        return refused

    def _evaluated(self, key: tuple[Part, tuple[Any, ...]], needs: Needs) -> int:
        part, own = key[0], needs_ad(needs)
        groups = (group for ad, group in self._groups_of(part) if not part.accepts(ad, own))
        self._refused[key] = reduce(or_, groups, 0)
        return self._refused[key]

    def _groups_of(self, part: Part) -> list[tuple[classad2.ClassAd, int]]:
        """Ads that differ in what the part looks at, each with the queues that have it."""
        if part not in self._alike:
            groups: dict[tuple[str, ...], tuple[classad2.ClassAd, int]] = {}
            for bit in _bits(self._with[part]):
                ad = pilot_ad(self._offers[bit], {})
                shown = tuple(_values(ad, part.of_entry))
                first, mask = groups.get(shown, (ad, 0))
                groups[shown] = first, mask | 1 << bit
            self._alike[part] = list(groups.values())
        return self._alike[part]


@lru_cache(maxsize=4096)
def _looked_at(requirements: str) -> tuple[str, ...]:
    """Attributes that can decide the value; all of them where names may be made as it goes."""
    names = {reference.name for reference in references(requirements)}
    if _MAKES_NAMES.search(requirements) or names & _WHOLE_ADS:
        names = {name.lower() for name in (*PILOT_ATTRIBUTES, *NEEDS_ATTRIBUTES)}
    return tuple(sorted(names))


def _shown(offered: OfferAd, names: tuple[str, ...]) -> tuple[str, ...]:
    """All of an ad that can decide the value of an expression with these names."""
    is_open = (f"{offered.is_open(name):d}{name in offered.declared:d}" for name in names)
    return (*_values(offered.ad, names), *is_open)


def _values(ad: classad2.ClassAd, names: Iterable[str]) -> Iterator[str]:
    return (str(ad.lookup(name)) if name in ad else "" for name in names)


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _bits(mask: int) -> list[int]:
    bits = []
    while mask:
        low = mask & -mask
        bits.append(low.bit_length() - 1)
        mask ^= low
    return bits


@dataclass(slots=True)
class _Group:
    jobs: int = 0
    old_jobs: int = 0
    weight: float = 0.0
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class FittingJobs:
    """Waiting jobs by need and fitting queues; `unfit` fit no queue that is open."""

    groups: list[JobGroup] = field(default_factory=list)
    unfit: int = 0


def grouped_jobs(
    demands: Iterable[Demand],
    fits: QueueMatcher,
    *,
    priorities: Mapping[int, float],
    old: frozenset[int] = frozenset(),
    owned: Collection[str] = (),
    identity_of: Callable[[Needs], Identity | None] = lambda _: None,
) -> FittingJobs:
    """Groups of equal waiting jobs that fit the same queues; `old` are TaskQueues of old jobs.

    Each pilot of the queues `owned` is of one identity: jobs of none fit none of them.
    """
    groups: dict[tuple[int, ResourceVector, Identity | None], _Group] = defaultdict(_Group)
    unfit = 0
    with_owners = sum(1 << bit for bit, name in enumerate(fits.names) if name in owned)
    for demand in demands:
        mask, identity = fits.mask(demand.needs), None
        if mask & with_owners:
            identity = identity_of(demand.needs)
            mask = mask if identity is not None else mask & ~with_owners
        if not mask:
            unfit += demand.waiting_jobs
            continue
        group = groups[mask, size_of(demand.needs), identity]
        priority = priorities.get(demand.task_queue_id, 0.0)
        group.jobs += demand.waiting_jobs
        group.weight += demand.waiting_jobs * priority
        group.share += priority
        if demand.task_queue_id in old:
            group.old_jobs += demand.waiting_jobs
    names = {mask: fits.queues(mask) for mask, _, _ in groups}
    return FittingJobs(
        [
            JobGroup(
                size,
                group.jobs,
                names[mask],
                group.old_jobs,
                group.weight / group.jobs,
                identity,
                group.share,
            )
            for (mask, size, identity), group in groups.items()
        ],
        unfit,
    )


def size_of(needs: Needs) -> ResourceVector:
    """Share of a pilot that a job with these needs takes."""
    return ResourceVector(needs.cores, needs.memory_mb, needs.gpus, needs.cpu_time_s)


def no_fit_reasons(offer: Resource, largest: Sequence[Demand]) -> list[str]:
    """Reasons why a queue fits none of these TaskQueues, the reason of the most jobs first."""
    reasons: Counter[str] = Counter()
    for demand in largest[:_ASKED_WHY]:
        reasons[offer_refusal(offer, demand.needs)] += demand.waiting_jobs
    return [reason for reason, _ in reasons.most_common(_TOLD) if reason]


def largest_first(demands: Sequence[Demand]) -> list[Demand]:
    """Largest TaskQueues, which are asked for the reason when no job fits."""
    return sorted(demands, key=lambda demand: -demand.waiting_jobs)[:_ASKED_WHY]

"""Comparison of DAGs' needs with the queues of sites: where each node of a DAG can run.

By the rule of TaskQueues (`matching.task_queues.requirements.offer_refusal`), with all queues that
are switched on, as the frontends see them, whatever holds pilots back for a time. Equal needs are
compared once. That its input data are near a site is one more need, the last one.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from matching.negotiation.candidates import Stopwatch
from matching.negotiation.deadline import Deadline
from matching.negotiation.node_fit import NeedCode, NodeFit, Unmet
from matching.negotiation.unmatched_reasons import grouped_reasons
from matching.task_queues.needs import Needs
from matching.task_queues.requirements import offer_refusal, refused_aspect
from matching.task_queues.resources import Resource
from wms.pilots.pressure.fitting import QueueMatcher
from wms.sites.frontends.entries import entry_offers
from wms.sites.selectors import configured_queues

#: Amounts of needs and offers: their kind, and how an amount is written.
_AMOUNTS: tuple[tuple[NeedCode, str, str], ...] = (
    (NeedCode.CPU_TIME, "cpu_time_s", "s of CPU time"),
    (NeedCode.CORES, "cores", "cores"),
    (NeedCode.MEMORY, "memory_mb", "MB of memory"),
    (NeedCode.GPUS, "gpus", "GPUs"),
    (NeedCode.DISK, "disk_mb", "MB of disk space"),
)
#: Kinds of what a queue as a whole refuses, by the aspect of its offer.
_CODES = {
    "place": NeedCode.PLACE,
    "tags": NeedCode.TAGS,
    "identity": NeedCode.IDENTITY,
    "sending": NeedCode.SENDING,
    "requirements": NeedCode.REQUIREMENTS,
}


#: Needs, owner, group, and the sites that input data are near.
_Key: TypeAlias = tuple[str, str, str, tuple[str, ...] | None]


class NodeFitter:
    """Finder of the sites where each node of a DAG can run, until its time limit.

    `offers` are those of queues, each with the id of its site; `known` are sites with queues,
    though nobody may have pilots there.
    """

    def __init__(
        self,
        offers: Iterable[tuple[int, Resource]],
        *,
        known: Collection[int] = (),
        stopwatch: Stopwatch | None = None,
        limit_s: float = math.inf,
    ) -> None:
        self._offers: dict[int, list[Resource]] = defaultdict(list)
        self._masks: dict[int, int] = defaultdict(int)
        self._ids: dict[str, int] = {}
        every: dict[str, Resource] = {}
        for bit, (site_id, offer) in enumerate(offers):
            every[str(bit)] = offer
            self._offers[site_id].append(offer)
            self._masks[site_id] |= 1 << bit
            self._ids[offer.site] = site_id
        self._matcher = QueueMatcher(every)
        self._has_owners = any(
            offer.owner_groups or offer.foreign_groups for offer in every.values()
        )
        self._known = frozenset(self._masks).union(known)
        self._deadline = Deadline(stopwatch, limit_s)
        self._sites: dict[int, frozenset[int]] = {}
        self._fits: dict[_Key, NodeFit] = {}

    def fit(
        self, text: str, *, owner: str, group: str, near: Sequence[str] | None = None
    ) -> NodeFit | None:
        """Sites where nodes with these needs can run; None for new needs when the time is up.

        `text` is the JSON of a DAG's `node_needs`, `owner` and `group` those of the DAG. `near` are
        the sites that its input data are near, if they tie it to any: the last need.
        """
        # Of whom the jobs are decides nothing else.
        is_personal = self._has_owners or '"requirements"' in text
        sites = None if near is None else tuple(near)
        key = (text, owner, group, sites) if is_personal else (text, "", "", sites)
        known = self._fits.get(key)
        if known is None and not self._deadline.is_over:
            known = self._fits[key] = self._compared(key)
        return known

    def near(self, tenths: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
        """Tenths of input data by the ids of the sites with queues that these are near."""
        ids = self._ids
        return tuple(sorted((ids[name], part) for name, part in tenths.items() if name in ids))

    def _compared(self, key: _Key) -> NodeFit:
        text, owner, group, near = key
        needs = [
            Needs.from_dict({"owner": owner, "owner_group": group, **given})
            for given in json.loads(text)
        ]
        fitting = [self._fitting_sites(self._matcher.mask(each)) for each in needs]
        if near is not None:
            fitting.append(frozenset(self._ids[name] for name in near if name in self._ids))
        return NodeFit(fitting, self._known, partial(self._unmet, needs))

    def _fitting_sites(self, mask: int) -> frozenset[int]:
        if mask not in self._sites:
            self._sites[mask] = frozenset(pk for pk, own in self._masks.items() if own & mask)
        return self._sites[mask]

    def _unmet(self, needs: list[Needs], place: int, site_id: int) -> Unmet:
        if place == len(needs):
            return Unmet(place, NeedCode.DATA, "its input data are not near")
        return _unmet(place, needs[place], self._offers[site_id])


def current_fitter(**limits: Any) -> NodeFitter:
    """Fitter with the entries as they are configured now, and these limits of time."""
    queues = configured_queues().select_related("site", "owner", "owner_group")
    ordered = list(queues.order_by("site__name", "name"))
    offers = [(entry.queue.site_id, offer) for entry, offer in entry_offers(ordered)]
    return NodeFitter(offers, known={queue.site_id for queue in ordered}, **limits)


def _unmet(place: int, needs: Needs, offers: Sequence[Resource]) -> Unmet:
    """First need that these offers of one site do not meet, where none of them fits."""
    if not offers:
        return Unmet(place, NeedCode.IDENTITY, "no frontend has pilots there")
    for code, field, words in _AMOUNTS:
        needed, largest = getattr(needs, field), max(getattr(offer, field) for offer in offers)
        if needed > largest:
            unit = words.split()[0] if " of " in words else words
            return Unmet(place, code, f"{needed} {words}, the largest queue has {largest} {unit}")
    refusals = [(offer.queue.rpartition("/")[2], offer_refusal(offer, needs)) for offer in offers]
    aspects = {refused_aspect(offer, needs) for offer in offers}
    code = _CODES.get(aspects.pop(), NeedCode.TOGETHER) if len(aspects) == 1 else NeedCode.TOGETHER
    return Unmet(place, code, grouped_reasons(refusals))

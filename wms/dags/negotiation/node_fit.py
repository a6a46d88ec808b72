"""Comparison of DAGs' needs with the queues of sites: where each node of a DAG can run.

By the rule of TaskQueues (`matching.task_queues.resources.offer_refusal`), with all queues that are
switched on, whatever holds pilots back for a time. Equal needs are compared once.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from typing import Any

from matching.negotiation.candidates import Stopwatch
from matching.negotiation.deadline import Deadline
from matching.negotiation.node_fit import NeedCode, NodeFit, Unmet
from matching.negotiation.unmatched_reasons import grouped_reasons
from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource, offer_refusal, refused_aspect
from wms.pilots.pressure.fitting import QueueMatcher
from wms.sites.models import Queue
from wms.sites.selectors import configured_queues, offered_resource

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


class NodeFitter:
    """Finder of the sites where each node of a DAG can run; after the time limit it finds none.

    `is_over` tells that. What was compared before is known still.
    """

    def __init__(
        self,
        queues: Iterable[Queue],
        *,
        stopwatch: Stopwatch | None = None,
        limit_s: float = math.inf,
    ) -> None:
        self._offers: dict[int, dict[str, Resource]] = defaultdict(dict)
        self._has_owners = False
        offers: dict[str, Resource] = {}
        self._masks: dict[int, int] = defaultdict(int)
        for bit, queue in enumerate(queues):
            offer = offers[str(queue)] = offered_resource(queue)
            self._offers[queue.site_id][queue.name] = offer
            self._masks[queue.site_id] |= 1 << bit
            self._has_owners |= offer.pilot_type == "private"
        self._matcher = QueueMatcher(offers)
        self._known = frozenset(self._masks)
        self._deadline = Deadline(stopwatch, limit_s)
        self._sites: dict[int, frozenset[int]] = {}
        self._fits: dict[tuple[str, str, str], NodeFit] = {}

    @property
    def is_over(self) -> bool:
        """Whether the time is up, and no needs that were not compared yet are."""
        return self._deadline.is_over

    def fit(self, text: str, *, owner: str, group: str) -> NodeFit | None:
        """Sites where nodes with these needs can run; None when the time is up.

        `text` is the JSON of a DAG's `node_needs`, `owner` and `group` those of the DAG.
        """
        is_personal = self._has_owners or '"requirements"' in text or '"pilot_types"' in text
        key = (text, owner, group) if is_personal else (text, "", "")
        known = self._fits.get(key)
        if known is None and not self.is_over:
            known = self._fits[key] = self._compared(key)
        return known

    def _compared(self, key: tuple[str, str, str]) -> NodeFit:
        text, owner, group = key
        needs = [
            Needs.from_dict({"owner": owner, "owner_group": group, **given})
            for given in json.loads(text)
        ]
        fitting = [self._fitting_sites(self._matcher.mask(each)) for each in needs]
        return NodeFit(fitting, self._known, partial(self._unmet, needs))

    def _fitting_sites(self, mask: int) -> frozenset[int]:
        if mask not in self._sites:
            self._sites[mask] = frozenset(pk for pk, own in self._masks.items() if own & mask)
        return self._sites[mask]

    def _unmet(self, needs: list[Needs], place: int, site_id: int) -> Unmet:
        return _unmet(place, needs[place], self._offers[site_id])


def current_fitter(**limits: Any) -> NodeFitter:
    """Fitter with the queues as they are configured now, and these limits of time. One query."""
    queues = configured_queues().select_related("site", "owner", "owner_group")
    return NodeFitter(queues.order_by("site__name", "name"), **limits)


def _unmet(place: int, needs: Needs, offers: dict[str, Resource]) -> Unmet:
    """What these offers of one site do not meet, of needs that none of them fits."""
    for code, field, words in _AMOUNTS:
        needed, largest = getattr(needs, field), max(getattr(o, field) for o in offers.values())
        if needed > largest:
            unit = words.split()[0] if " of " in words else words
            return Unmet(place, code, f"{needed} {words}, the largest queue has {largest} {unit}")
    refusals = {name: offer_refusal(offer, needs) for name, offer in offers.items()}
    aspects = {refused_aspect(offer, needs) for offer in offers.values()}
    code = _CODES.get(aspects.pop(), NeedCode.TOGETHER) if len(aspects) == 1 else NeedCode.TOGETHER
    return Unmet(place, code, grouped_reasons(refusals.items()))

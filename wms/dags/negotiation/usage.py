"""What the DAGs take of what is shared: places, concurrency limits."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from matching.cycle_sites import Offer, number_of
from matching.fairshare import effective_quotas, limit_of
from wms.accounting.selectors import limits
from wms.dags.models import Dag
from wms.dags.negotiation import requests as demand
from wms.dags.negotiation.cycle import read_offers
from wms.dags.negotiation.requests import limits_in_use
from wms.dags.states import DagState


def uses_by_limit() -> Mapping[str, Mapping[str, float]]:
    """The amounts in use by the name that DAGs gave, for each configured limit that holds for it.

    Names for which no limit holds are absent. Two queries.
    """
    configured = limits()
    uses: dict[str, dict[str, float]] = defaultdict(dict)
    for name, amount in sorted(limits_in_use().items()):
        holding, _ = limit_of(name, configured)
        if holding:
            uses[holding][name] = amount
    return dict(uses)


@dataclass(frozen=True, slots=True)
class DagCounts:
    """How many DAGs of a submitter look for a site, and how many have one."""

    idle: int = 0
    running: int = 0


def dags_by_submitter() -> dict[tuple[int, int | None], DagCounts]:
    """The DAGs of each submitter that has any, by the ids of user and group. One query."""
    found: dict[tuple[int, int | None], dict[str, int]] = defaultdict(dict)
    states = (DagState.IDLE, DagState.RUNNING)
    rows = Dag.objects.filter(state__in=states, parent_node=None).order_by()
    columns = ("owner_id", "accounting_group_id", "state")
    for user_id, group_id, state, count in rows.values_list(*columns).annotate(Count("pk")):
        found[user_id, group_id][state] = count
    return {
        key: DagCounts(counts.get(DagState.IDLE, 0), counts.get(DagState.RUNNING, 0))
        for key, counts in found.items()
    }


@dataclass(frozen=True, slots=True)
class Places:
    """The places of all open sites, and what is held of them now.

    `quotas` and `held` are by group; both include what its children have. `held_by_nobody` is
    held in the name of no group.
    """

    total: float
    held_total: float
    quotas: Mapping[str, float]
    held: Mapping[str, float]
    held_by_nobody: float


def places_in_use(now: datetime) -> Places:
    """How the next negotiation would divide the places among the groups."""
    offers = read_offers(now)
    usage = demand.usage(offers)
    held: dict[str, float] = defaultdict(float)
    for name, amount in usage.held_by_group.items():
        parts = name.split(".") if name else []
        for length in range(1, len(parts) + 1):
            held[".".join(parts[:length])] += amount
    held_total = sum(usage.held_by_group.values())
    total = _places(offers, held_total)
    return Places(
        total=total,
        held_total=held_total,
        quotas=effective_quotas(usage.groups, total),
        held=dict(held),
        held_by_nobody=usage.held_by_group.get("", 0.0),
    )


def _places(offers: Sequence[Offer], held: float) -> float:
    """A site without a maximum counts as large as what is held, as in the negotiation."""
    sizes = [number_of(offer.ad, "MaxMatches", math.inf) for offer in offers if not offer.closed]
    return sum(size if math.isfinite(size) else held for size in sizes)

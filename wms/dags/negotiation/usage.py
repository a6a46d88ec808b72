"""Usage of concurrency limits and group quotas, and DAG counts of submitters, for pages and API.

Also the quotas of groups themselves, as shares of the match capacity of all open sites.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from matching.negotiation.cycle_sites import Offer, number_of
from matching.negotiation.fairshare import effective_quotas, limit_of
from wms.accounting.selectors import limits
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.negotiation import requests as demand
from wms.dags.negotiation.cycle import read_offers
from wms.dags.negotiation.requests import limits_in_use, names_in_use
from wms.dags.states import DagState


def uses_by_limit(user: User) -> Mapping[str, Mapping[str, float]]:
    """Amounts in use by configured limit and by the name that DAGs gave.

    Names without a limit are absent, and those that only DAGs of other frontends gave. Two queries,
    three for who does not see all.
    """
    configured, seen = limits(), names_in_use(user)
    uses: dict[str, dict[str, float]] = defaultdict(dict)
    for name, amount in sorted(limits_in_use().items()):
        limit, _ = limit_of(name, configured)
        if limit and (seen is None or name == limit or name in seen):
            uses[limit][name] = amount
    return dict(uses)


@dataclass(frozen=True, slots=True)
class DagCounts:
    """Numbers of idle and running DAGs of a submitter."""

    idle: int = 0
    running: int = 0


def dags_by_submitter() -> dict[tuple[int, int | None], DagCounts]:
    """DAG counts of each submitter that has any, by user id and group id. One query."""
    by_state: dict[tuple[int, int | None], dict[str, int]] = defaultdict(dict)
    states = (DagState.IDLE, DagState.RUNNING)
    rows = Dag.objects.filter(state__in=states, parent_node=None).order_by()
    columns = ("owner_id", "accounting_group_id", "state")
    for user_id, group_id, state, count in rows.values_list(*columns).annotate(Count("pk")):
        by_state[user_id, group_id][state] = count
    return {
        key: DagCounts(counts.get(DagState.IDLE, 0), counts.get(DagState.RUNNING, 0))
        for key, counts in by_state.items()
    }


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """Match capacity of all open sites, the groups' quotas of it, and the matches held now.

    `quotas` and `held` are by group and include child groups. `held_by_nobody` are the matches of
    DAGs without a group.
    """

    total: float
    held_total: float
    quotas: Mapping[str, float]
    held: Mapping[str, float]
    held_by_nobody: float


def quota_usage(now: datetime) -> QuotaUsage:
    """Quotas of the groups in the next cycle, and the matches that they hold."""
    offers = read_offers(now)
    usage = demand.usage(offers)
    held: dict[str, float] = defaultdict(float)
    for name, amount in usage.held_by_group.items():
        parts = name.split(".") if name else []
        for length in range(1, len(parts) + 1):
            held[".".join(parts[:length])] += amount
    held_total = sum(usage.held_by_group.values())
    total = _match_capacity(offers, held_total)
    return QuotaUsage(
        total=total,
        held_total=held_total,
        quotas=effective_quotas(usage.groups, total),
        held=dict(held),
        held_by_nobody=usage.held_by_group.get("", 0.0),
    )


def _match_capacity(offers: Sequence[Offer], held: float) -> float:
    """Sum of MaxMatches; a site without one counts as many as are held, as in the negotiation."""
    sizes = [number_of(offer.ad, "MaxMatches", math.inf) for offer in offers if not offer.closed]
    return sum(size if math.isfinite(size) else held for size in sizes)

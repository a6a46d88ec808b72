"""Selectors of negotiation cycles: their records, matches, and reasons of DAGs left over.

Also the requests of visible DAGs. For pages, API and history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import QuerySet

from matching.negotiation.decision import Request
from wms.accounting.walls import seen_or_all, walls_of
from wms.core.errors import NotFound
from wms.core.models import User
from wms.dags.models import Dag, MatchRecord, NegotiationCycle
from wms.dags.reading.selectors import visible_dags


def visible_cycles(user: User) -> QuerySet[NegotiationCycle]:
    """Records that the user may see (at present all of them), latest first."""
    cycles = NegotiationCycle.objects.order_by("-pk")
    return cycles if user.is_active else cycles.none()


def busy_cycles(user: User) -> QuerySet[NegotiationCycle]:
    """Visible records of cycles with at least one request."""
    return visible_cycles(user).filter(requests__gt=0)


def latest_cycle(*, not_before: datetime) -> NegotiationCycle | None:
    """Record of the latest cycle, None if it started before `not_before`."""
    return NegotiationCycle.objects.filter(started_at__gte=not_before).order_by("-pk").first()


def find_cycle(user: User, cycle_id: int) -> NegotiationCycle:
    """Visible record by id. Raises NotFound."""
    cycle = visible_cycles(user).filter(pk=cycle_id).first()
    if cycle is None:
        raise NotFound(f"There is no record of negotiation {cycle_id}: they are kept for 30 days.")
    return cycle


def seen_requests(user: User, requests: Sequence[Request]) -> list[Request]:
    """Requests of the DAGs that the user may see. One query at most."""
    dags = seen_or_all(user, visible_dags)
    if dags is None:
        return list(requests)
    ids = [request.dag_id for request in requests]
    seen = set(dags.filter(pk__in=ids).values_list("pk", flat=True))
    return [request for request in requests if request.dag_id in seen]


def matches_of(user: User, cycle: NegotiationCycle) -> QuerySet[MatchRecord]:
    """Matches of a cycle, of the DAGs that the user may see."""
    matches = MatchRecord.objects.filter(matched_at=cycle.started_at, dag__in=visible_dags(user))
    return matches.select_related("dag__owner", "site").only(
        "dag__name", "dag__state", "dag__owner__username", "site__name", "dag_rank", "site_rank",
        "ended_at", "end",
    ).order_by("dag_id")  # fmt: skip


@dataclass(frozen=True, slots=True)
class LeftOver:
    """Reason why DAGs got no site; `dags` are some of them."""

    reason: str
    count: int
    dags: Sequence[Dag]


def left_over_of(user: User, cycle: NegotiationCycle) -> list[LeftOver]:
    """Reasons of unmatched DAGs in a cycle, the most frequent first. One query.

    Before walls only of DAGs that the user may see, as far as they were recorded.
    """
    ids = [dag_id for group in cycle.left_over for dag_id in group["dags"]]
    dags = visible_dags(user).filter(pk__in=ids).only("name", "state").in_bulk()
    lines = [
        LeftOver(group["reason"], group["count"], [dags[pk] for pk in group["dags"] if pk in dags])
        for group in cycle.left_over
    ]
    if walls_of(user).is_open:
        return lines
    return [replace(line, count=len(line.dags)) for line in lines if line.dags]

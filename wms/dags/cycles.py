"""Reading the records of negotiations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet, Sum

from wms.core.models import User
from wms.dags.models import NegotiationCycle


def visible_cycles(user: User) -> QuerySet[NegotiationCycle]:
    """The records that the user may see: at present all of them, latest first."""
    cycles = NegotiationCycle.objects.order_by("-pk")
    return cycles if user.is_active else cycles.none()


def busy_cycles(user: User) -> QuerySet[NegotiationCycle]:
    """Those among them in which a DAG wanted a site."""
    return visible_cycles(user).filter(requests__gt=0)


@dataclass(frozen=True, slots=True)
class CycleFigures:
    """The last negotiation, and the matches of it and of those since an earlier one."""

    last: NegotiationCycle
    matches: int


def figures_since(cycle_id: int | None, *, not_before: datetime) -> CycleFigures | None:
    """The figures of the records after `cycle_id`, old ones left out; None without any.

    Without an earlier one only the last negotiation counts. Records are written by one negotiator
    at a time, so their ids are in the order in which they can be seen.
    """
    recent = NegotiationCycle.objects.filter(started_at__gte=not_before)
    last = recent.order_by("-pk").first()
    if last is None or last.pk == cycle_id:
        return None
    if cycle_id is None:
        return CycleFigures(last, last.matches)
    new = recent.filter(pk__gt=cycle_id, pk__lte=last.pk)
    return CycleFigures(last, new.aggregate(total=Sum("matches"))["total"] or 0)

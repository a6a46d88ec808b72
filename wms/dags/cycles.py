"""Reading the records of negotiations."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from wms.core.models import User
from wms.dags.models import NegotiationCycle


def visible_cycles(user: User) -> QuerySet[NegotiationCycle]:
    """The records that the user may see: at present all of them, latest first."""
    cycles = NegotiationCycle.objects.order_by("-pk")
    return cycles if user.is_active else cycles.none()


def busy_cycles(user: User) -> QuerySet[NegotiationCycle]:
    """Those among them in which a DAG wanted a site."""
    return visible_cycles(user).filter(requests__gt=0)


def latest_cycle(*, not_before: datetime) -> NegotiationCycle | None:
    """The record of the last negotiation, unless that was long ago."""
    return NegotiationCycle.objects.filter(started_at__gte=not_before).order_by("-pk").first()

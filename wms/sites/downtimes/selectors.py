"""Selectors of downtimes: their states, those in a range of time, overlapping ones."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    Case,
    CharField,
    DateTimeField,
    DurationField,
    ExpressionWrapper,
    F,
    Q,
    QuerySet,
    TextChoices,
    Value,
    When,
)
from django.db.models.functions import Least, Now

from wms.core.errors import NotFound
from wms.core.models import User
from wms.sites.downtimes.models import Downtime
from wms.sites.selectors import visible_downtimes


class DowntimeState(TextChoices):
    """States of a downtime, computed from its times."""

    PLANNED = "planned", "planned"
    DRAINING = "draining", "draining"
    RUNNING = "running", "running"
    OVER = "over", "over"
    CANCELLED = "cancelled", "cancelled"


def listed_downtimes(user: User) -> QuerySet[Any]:
    """The downtimes that the user may see, with their sites and the state that each is in now."""
    lead = ExpressionWrapper(
        F("lead_time_s") * Value(timedelta(seconds=1), DurationField()), DurationField()
    )
    drains_from = ExpressionWrapper(F("start") - lead, DateTimeField())
    state = Case(
        When(cancelled_at__lte=F("start"), then=Value(DowntimeState.CANCELLED)),
        When(Q(cancelled_at__isnull=False) | Q(end__lte=Now()), then=Value(DowntimeState.OVER)),
        When(start__lte=Now(), then=Value(DowntimeState.RUNNING)),
        When(drains_from__lte=Now(), then=Value(DowntimeState.DRAINING)),
        default=Value(DowntimeState.PLANNED),
        output_field=CharField(),
    )
    return (
        visible_downtimes(user)
        .annotate(drains_from=drains_from, ends_at=Least("end", "cancelled_at"))
        .annotate(state=state)
    )


def find_downtime(user: User, downtime_id: int) -> Downtime:
    """One downtime that the user may see. Raises NotFound."""
    downtime: Downtime | None = listed_downtimes(user).filter(pk=downtime_id).first()
    if downtime is None:
        raise NotFound(f"There is no downtime {downtime_id}.")
    return downtime


def downtimes_between(user: User, since: datetime, until: datetime) -> QuerySet[Any]:
    """Downtimes that overlap this range, lead times included, by start."""
    return (
        listed_downtimes(user)
        .filter(drains_from__lt=until, ends_at__gt=since)
        .exclude(cancelled_at__lte=F("start"))
        .order_by("start", "pk")
    )


def overlapping(site_names: Collection[str], *, start: datetime, end: datetime) -> list[Downtime]:
    """The downtimes of these sites that are in force at some time of this stretch, by start."""
    rows = Downtime.objects.filter(
        site__name__in=site_names, cancelled_at=None, start__lt=end, end__gt=start
    )
    return list(rows.select_related("site").order_by("start", "pk"))

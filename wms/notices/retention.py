"""Removal of old notices and of old deliveries, as a control loop."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Model, QuerySet

from wms.notices.models import Delivery, Notice

NOTICES_KEPT = timedelta(days=90)
DELIVERIES_KEPT = timedelta(days=30)
#: Rows removed in one transaction, and time limit of a cycle.
_AT_ONCE = 5000
_CYCLE_S = 120.0


def run_cycle(now: datetime) -> dict[str, Any]:
    """Remove notices and deliveries whose time is over."""
    until = time.monotonic() + _CYCLE_S
    ended = Delivery.objects.exclude(state=Delivery.State.WAITING)
    return {
        "notices": _remove(Notice.objects.filter(created_at__lt=now - NOTICES_KEPT), until),
        "deliveries": _remove(ended.filter(created_at__lt=now - DELIVERIES_KEPT), until),
    }


def _remove(rows: QuerySet[Any], until: float) -> int:
    """Remove rows in batches, each committed by itself; the number of rows."""
    model: type[Model] = rows.model
    count = 0
    while ids := list(rows.order_by("created_at").values_list("pk", flat=True)[:_AT_ONCE]):
        model._default_manager.filter(pk__in=ids).delete()
        count += len(ids)
        if time.monotonic() >= until:
            break
    return count

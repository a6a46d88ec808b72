"""Forgetting: old notices, and the log of old deliveries."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from wms.notices.models import Delivery, Notice

NOTICES_KEPT = timedelta(days=90)
DELIVERIES_KEPT = timedelta(days=30)


def run_cycle(now: datetime) -> dict[str, Any]:
    """Remove what nobody looks at any more."""
    notices, _ = Notice.objects.filter(created_at__lt=now - NOTICES_KEPT).delete()
    ended = Delivery.objects.exclude(state=Delivery.State.WAITING)
    deliveries, _ = ended.filter(created_at__lt=now - DELIVERIES_KEPT).delete()
    return {"notices": notices, "deliveries": deliveries}

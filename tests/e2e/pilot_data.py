"""A test pilot for the walk through the pages: it found its node unfit and has ended."""

from __future__ import annotations

from django.utils import timezone

from tests.e2e.production import Production
from tests.factories import SYSTEM
from wms.pilots.models import Pilot, PilotCheck
from wms.pilots.protocol.registration import end_pilot
from wms.pilots.testing.services import send_test_pilot
from wms.sites.models import Queue


def tested_pilot(made: Production) -> Pilot:
    """Its report is on its own page, and its verdict on that of its queue."""
    queue, now = Queue.objects.get(site=made.site, name="long"), timezone.now()
    pilot = send_test_pilot(queue.pk, actor=SYSTEM, reason="new nodes")
    Pilot.objects.filter(pk=pilot.pk).update(
        state="running", batch="batch", native_id="4711", batch_state="running", token_sha256="t",
        registered_at=now, heartbeat_at=now, node={"hostname": "node1", "fence": "bwrap"},
    )  # fmt: skip
    for name, is_ok in (("disk", True), ("software", False)):
        PilotCheck.objects.create(
            pilot=pilot, name=name, is_ok=is_ok, seconds=1.5, key=name,
            reason="" if is_ok else "/sw cannot be used", metrics={"free_mb": 12},
        )  # fmt: skip
    pilot.refresh_from_db()
    end_pilot(pilot, end="unfit", detail="check software", now=now)
    return pilot

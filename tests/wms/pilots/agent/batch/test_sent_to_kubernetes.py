"""A pilot that the director sends to Kubernetes: a pod's process that calls in and runs a job.

The API server is a real one where there are programs for it, else the fake that conforms; what
stands in for a kubelet starts the pilot as a process of the pod's account.
"""

from __future__ import annotations

import pytest
from django.utils import timezone

from tests.batch_systems.kubernetes import Kubernetes, settings_of
from tests.batch_systems.kubernetes_node import NODE
from tests.wms.elements.kubernetes_clusters import (  # noqa: F401 - fixtures of another module
    kubernetes,
    namespace,
)
from tests.wms.pilots.agent.conftest import World, wait_until
from tests.wms.pilots.directing import poll, sent
from wms.jobs.models import Attempt
from wms.pilots.models import Pilot
from wms.sites.models import Queue
from wms.sites.selectors import element_of

pytestmark = [pytest.mark.batch, pytest.mark.slow]


def test_a_pilot_in_kubernetes_runs_a_job_and_ends(
    world: World,
    settings,
    kubernetes: Kubernetes,  # noqa: F811
    namespace: str,  # noqa: F811
) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "PUBLIC_URL": world.server.url}
    Queue.objects.update(element="kubernetes", settings=settings_of(kubernetes, namespace))
    job = world.submit("#!/bin/sh\necho done\n")

    assert sent() == {"UW/short": 1}

    world.wait_for_state(job, "done")
    wait_until(lambda: Pilot.objects.filter(state="done").exists(), "the pilot ends")
    pilot = Pilot.objects.select_related("queue__site").get()
    assert pilot.native_id == f"{pilot.batch}-0"
    assert pilot.registered_at is not None
    assert not pilot.checks.filter(is_ok=False).exists()
    assert Attempt.objects.get().pilot_id == pilot.pk
    element = element_of(pilot.queue)
    wait_until(
        lambda: element.status([pilot.native_id])[pilot.native_id].state == "done",
        "the cluster sees its end",
    )
    assert element.status([pilot.native_id])[pilot.native_id].node == NODE
    assert "pilot" in element.log(pilot.native_id)
    poll(timezone.now())
    pilot.refresh_from_db()
    assert pilot.state == "done"

"""Missing fences of payloads are shown with attempts, pilots and queues."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from tests import factories
from wms.jobs.models import Job
from wms.pilots.models import Pilot
from wms.sites.models import Queue


def ran_behind(fence: str, owner: object) -> tuple[Job, Pilot]:
    job = factories.job(owner)
    pilot = factories.pilot()
    Pilot.objects.filter(pk=pilot.pk).update(node=pilot.node | {"fence": fence})
    factories.run_job(pilot)
    return job, pilot


@pytest.mark.parametrize(("fence", "is_told"), [("none", True), ("bwrap", False)])
def test_a_job_tells_that_its_payload_has_no_fence(
    alice: Client, people: SimpleNamespace, fence: str, is_told: bool
) -> None:
    job, _ = ran_behind(fence, people.alice)

    page = alice.get(reverse("web:job", args=[job.pk])).content.decode()

    assert ('id="no-fence"' in page) is is_told
    assert ("<span>no fence</span>" in page) is is_told


def test_an_attempt_tells_its_fence(people: SimpleNamespace) -> None:
    job, pilot = ran_behind("none", people.alice)
    client = APIClient()
    client.force_authenticate(people.alice)

    [attempt] = client.get(f"/api/v1/jobs/{job.pk}/").json()["attempts"]

    assert (attempt["fence"], attempt["pilot"]) == ("none", str(pilot.uuid))


def test_a_queue_tells_that_its_payloads_have_no_fence(alice: Client) -> None:
    queue = factories.site("Here").queues.get()
    address = reverse("web:queue", args=["Here", queue.name])

    before = alice.get(address).content.decode()
    Queue.objects.update(fence=Queue.Fence.NONE)
    after = alice.get(address).content.decode()

    assert "can see the pilot" not in before
    assert "can see the pilot" in after


@pytest.mark.parametrize(
    ("settled", "told"),
    [
        ("", "auto: bwrap where it works on the first node, else none"),
        ("bwrap", "bwrap: a sandbox of bubblewrap; <small>auto, as the first pilot found it"),
        ("none", "can see the pilot and each other; <small>auto, as the first pilot found it"),
    ],
)
def test_a_queue_tells_what_auto_came_to_mean(alice: Client, settled: str, told: str) -> None:
    queue = factories.site("Here").queues.get()
    Queue.objects.update(settled_fence=settled)

    page = alice.get(reverse("web:queue", args=["Here", queue.name])).content.decode()

    assert told in page


@pytest.mark.parametrize(
    ("network", "told"),
    [
        ("open", "its payloads reach link-local addresses too"),
        ("node", "the node&#x27;s, without link-local addresses"),
        ("portal", "the portal only"),
        ("none", "<dd>nothing</dd>"),
    ],
)
def test_a_pilot_tells_what_its_payloads_reach(
    alice: Client, people: SimpleNamespace, network: str, told: str
) -> None:
    _, pilot = ran_behind("bwrap", people.alice)
    Pilot.objects.filter(pk=pilot.pk).update(node=pilot.node | {"network": network})

    page = alice.get(reverse("web:pilot", args=[pilot.pk])).content.decode()

    assert told.replace("&#x27;", "'") in page


def test_a_queue_tells_what_its_payloads_reach(alice: Client) -> None:
    queue = factories.site("Here").queues.get()
    Queue.objects.update(network=Queue.Network.PORTAL)

    page = alice.get(reverse("web:queue", args=["Here", queue.name])).content.decode()

    assert "portal only" in page

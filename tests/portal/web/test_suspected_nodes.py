"""Page of a suspected worker node, and the table on its site's page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.portal.furnishing import suspected_nodes
from wms.core.models import User
from wms.failures import grouping
from wms.failures.models import FailureGroup
from wms.jobs.models import Job
from wms.pilots.suspect_models import SuspectedNode


@pytest.fixture
def node(people: SimpleNamespace) -> SuspectedNode:
    """A suspected node of UW, with a job that failed there and the group of its failure."""
    site = factories.site("UW")
    factories.job(people.alice)
    job = factories.run_job(factories.pilot(site.queues.get()), exit_code=1)
    assert job is not None
    suspected_nodes(site, job, 1)
    grouping.run_cycle(timezone.now())
    return SuspectedNode.objects.get()


@pytest.fixture
def sam(people: SimpleNamespace, browser_of: Callable[[User], Client]) -> Client:
    return browser_of(people.sam)


@pytest.fixture
def alice(people: SimpleNamespace, browser_of: Callable[[User], Client]) -> Client:
    return browser_of(people.alice)


def test_a_sites_page_tells_its_suspected_nodes_with_jobs_and_cause(
    node: SuspectedNode, alice: Client
) -> None:
    shown = alice.get("/sites/UW/").content.decode()

    job, group = Job.objects.get(), FailureGroup.objects.get()
    assert "Suspected worker nodes" in shown
    assert f'href="/suspected-nodes/{node.pk}/"' in shown
    assert f'href="/jobs/?id={job.pk}"' in shown
    assert f'href="/errors/{group.pk}/">no such file' in shown


def test_a_node_that_was_cleared_is_not_on_its_sites_page(
    node: SuspectedNode, alice: Client
) -> None:
    SuspectedNode.objects.update(ended_at=timezone.now(), end_reason="well", ended_by="sam")

    assert "Suspected worker nodes" not in alice.get("/sites/UW/").content.decode()
    assert "by sam" in alice.get(f"/suspected-nodes/{node.pk}/").content.decode()


def test_a_shifter_clears_a_node_on_its_page(node: SuspectedNode, sam: Client) -> None:
    address = f"/suspected-nodes/{node.pk}/"
    offered = sam.get(address).content.decode()
    without_reason = sam.post(f"{address}clear/", {"reason": " "})
    cleared = sam.post(f"{address}clear/", {"reason": "new disk"}, follow=True)
    again = sam.post(f"{address}clear/", {"reason": "new disk"})

    assert f'action="{address}clear/"' in offered
    assert without_reason.status_code == 400
    assert 'id="fault-clear"' in without_reason.content.decode()
    assert cleared.status_code == 200
    node.refresh_from_db()
    assert node.ended_by == "sam"
    assert again.status_code == 409
    assert "cleared by sam" in again.content.decode()


def test_who_may_not_clear_a_node_is_offered_no_form(node: SuspectedNode, alice: Client) -> None:
    address = f"/suspected-nodes/{node.pk}/"

    assert "Clear this node" not in alice.get(address).content.decode()
    assert alice.post(f"{address}clear/", {"reason": "new disk"}).status_code == 403
    assert alice.get("/suspected-nodes/999999/").status_code == 404


def test_the_api_lists_suspected_nodes_and_clears_them(
    node: SuspectedNode, people: SimpleNamespace, sam: Client
) -> None:
    key = {"Authorization": f"Token {factories.token_for(people.sam)}"}
    client = Client(headers=key)

    [told] = client.get("/api/v1/sites/UW/suspected-nodes/").json()["results"]
    cleared = client.post(
        f"/api/v1/suspected-nodes/{node.pk}/clear/",
        {"reason": "new disk"},
        content_type="application/json",
    )
    left = client.get("/api/v1/sites/UW/suspected-nodes/").json()["results"]

    assert (told["host"], told["failed"], told["tried"]) == (node.host, 9, 9)
    assert told["failed_jobs"] == node.failed_jobs
    assert (cleared.status_code, cleared.json()["end_reason"]) == (200, "new disk")
    assert left == []
    assert node.since > timezone.now() - timedelta(hours=1)

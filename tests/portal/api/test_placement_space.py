"""Allocations and links of storages, as the API and pages show them."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from tests import factories
from wms.core.models import AuditEntry
from wms.placement import operations
from wms.placement.models import PlacementAllocation, PlacementRequest
from wms.placement.services import submit_requests
from wms.placement.storages.models import Storage
from wms.placement.storages.services import StorageSpec, create_storage

URL = "/api/v1/placement-allocations/"


@pytest.fixture
def allocation(people: SimpleNamespace) -> PlacementAllocation:
    """Space that Alice has at a storage for a day."""
    create_storage(
        StorageSpec("pool", ["https://pool.example/"], space_bytes=2**40), actor=factories.SYSTEM
    )
    return PlacementAllocation.objects.create(
        owner=people.alice, name="run7", host="pool", storage=Storage.objects.get(),
        size_bytes=2**30, expires_at=timezone.now() + timedelta(days=1),
    )  # fmt: skip


def test_an_allocation_is_listed_and_released_with_a_reason(
    alice: APIClient, allocation: PlacementAllocation
) -> None:
    [told] = alice.get(URL).json()["results"]
    at = f"{URL}{allocation.pk}/release/"

    assert (told["owner"], told["storage"], told["size_bytes"]) == ("alice", "pool", 2**30)
    assert told["taken_bytes"] == 0
    assert alice.post(at, {}, "json").status_code == 400
    done = alice.post(at, {"reason": "no need"}, "json")
    assert (done.status_code, done.json()["released_at"] is None) == (200, False)
    assert alice.post(at, {"reason": "again"}, "json").status_code == 409
    assert alice.get(URL).json()["results"] == []
    assert AuditEntry.objects.get(action="release allocation").reason == "no need"


def test_others_do_not_release_it(
    people: SimpleNamespace, allocation: PlacementAllocation, client: Client
) -> None:
    client.force_login(people.charlie)
    page = client.get(reverse("web:allocation", args=[allocation.pk]))
    at = reverse("web:release-allocation", args=[allocation.pk])
    refused = client.post(at, {"reason": "mine now"})
    client.force_login(people.alice)
    done = client.post(at, {"reason": "no need"})

    assert (page.status_code, refused.status_code, done.status_code) == (200, 403, 302)
    allocation.refresh_from_db()
    assert allocation.released_at is not None


def test_links_tell_how_transfers_went_and_what_waits(
    people: SimpleNamespace, alice: APIClient, client: Client, allocation: PlacementAllocation
) -> None:
    text = '[dap_type = "transfer"; src_url = "https://far.example/x"; dest_url = "{}/y"]'
    ads = [text.format("https://pool.example")] * 3 + [text.format("https://else.example")]
    ids = submit_requests("".join(ads), actor=factories.SYSTEM, owner=people.alice).ids
    now = timezone.now()
    for pk, code in ((ids[0], 0), (ids[1], 1)):
        operations.start_attempt(pk, now - timedelta(seconds=2))
        operations.end_attempt(pk, exit_code=code, message="no", size_bytes=2000, now=now)
    # What was removed tells nothing of a link.
    operations.start_attempt(ids[3], now)
    operations.remove_requests([ids[3]], actor=factories.SYSTEM, reason="enough")

    [link] = alice.get("/api/v1/placement-links/").json()["links"]
    client.force_login(people.alice)
    page = client.get(reverse("web:placement-links")).content.decode()

    assert (link["source"], link["destination"]) == ("far.example", "pool")
    assert (link["attempts"], link["successes"], link["success_rate"]) == (2, 1, 0.5)
    assert link["bytes_per_s"] == pytest.approx(1000)
    # The one that failed waits for its next attempt, the third one for its first.
    assert (link["running"], link["waiting"]) == (0, 2)
    assert (link["last_error"], link["last_error_request"]) == ("no", ids[1])
    assert PlacementRequest.objects.count() == 4
    assert "50 %" in page

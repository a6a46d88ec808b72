"""The page of one's credentials for transfers: kept, never shown, forgotten."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from tests import factories
from wms.placement.credential_models import PlacementCredential
from wms.placement.credentials import credential_for

URL = "/placements/credentials/"


@pytest.fixture
def alice(db: None) -> Client:
    client = Client()
    client.force_login(factories.people().alice)
    return client


def test_a_credential_is_kept_and_what_is_secret_not_shown(alice: Client) -> None:
    order = {"endpoint": "davs://s.example", "user": "alice", "password": "hush"}

    assert alice.post(URL, order).status_code == 302
    page = alice.get(URL).content.decode()

    kept = PlacementCredential.objects.get()
    found = credential_for(kept.owner_id, "davs", "s.example", 443, limited_to=None)
    assert (found.user, found.secret) == ("alice", "hush")
    assert "davs://s.example:443" in page
    assert "hush" not in page


@pytest.mark.parametrize("order", [{"endpoint": "gopher://x", "token": "hush"}, {"token": "hush"}])
def test_a_fault_is_told_and_the_secret_is_not(alice: Client, order: dict[str, str]) -> None:
    answer = alice.post(URL, order)

    assert answer.status_code == 400
    assert answer.context["faults"]
    assert "hush" not in answer.content.decode()
    assert not PlacementCredential.objects.exists()


def test_a_credential_is_forgotten_by_its_owner_alone(alice: Client) -> None:
    alice.post(URL, {"endpoint": "https://s.example", "token": "hush"})
    at = reverse("web:forget-placement-credential", args=[PlacementCredential.objects.get().pk])
    bob = Client()
    bob.force_login(factories.people().bob)

    assert bob.post(at).status_code == 404
    assert alice.post(at).status_code == 302
    assert not PlacementCredential.objects.exists()

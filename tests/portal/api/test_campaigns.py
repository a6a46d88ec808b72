"""Campaigns by the API and on their pages."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client
from rest_framework.test import APIClient

from tests.portal.api.submissions import URL, dag_form

CAMPAIGNS = "/api/v1/campaigns/"


@pytest.fixture
def dag_id(alice: APIClient) -> int:
    number: int = alice.post(URL, dag_form(labels="campaign=mc/27,night")).json()["id"]
    return number


def test_a_campaign_is_told_with_its_parts(alice: APIClient, dag_id: int) -> None:
    [line] = alice.get(CAMPAIGNS).json()
    told = alice.get(f"{CAMPAIGNS}mc/27/").json()

    assert (line["name"], line["sums"]["dags"]) == ("mc/27", 1)
    assert told["progress"]["total"] == told["progress"]["left"] == 2
    assert (told["forecast"]["cause"], told["outlook"]) == ("too_early", "none")
    assert told["use"]["core_hours"] == 0
    assert alice.get(f"{CAMPAIGNS}other/").status_code == 404


def test_a_deadline_is_set_by_program(alice: APIClient, dag_id: int) -> None:
    body = {"deadline": "2100-05-01T00:00:00Z", "reason": "the conference"}

    told = alice.post(f"{CAMPAIGNS}mc/27/deadline/", body, format="json").json()

    assert (told["deadline"][:10], told["outlook"]) == ("2100-05-01", "unknown")
    bad = alice.post(f"{CAMPAIGNS}mc/27/deadline/", body | {"deadline": "x"}, format="json")
    assert bad.status_code == 400


def test_labels_are_summed(alice: APIClient, dag_id: int) -> None:
    assert [each["label"] for each in alice.get("/api/v1/labels/").json()] == [
        "campaign=mc/27", "night",
    ]  # fmt: skip
    [night] = alice.get("/api/v1/labels/?begins=ni").json()
    assert night["nodes"]["total"] == 2


def test_pages_show_campaigns_and_take_a_deadline(
    alice: APIClient, people: SimpleNamespace, dag_id: int
) -> None:
    browser = Client()
    browser.force_login(people.alice)

    assert "mc/27" in browser.get("/campaigns/").content.decode()
    shown = browser.get("/campaigns/mc/27/").content.decode()
    assert "None: it has been running for less than ten minutes." in shown
    address, body = "/campaigns/mc/27/deadline/", {"seen": "none", "reason": "why"}
    bad = browser.post(address, body | {"deadline": "soon"})
    assert bad.status_code == 400
    assert "Give a time such as" in bad.content.decode()
    done = browser.post(address, body | {"deadline": "2100-05-01T00:00"}, follow=True)
    assert "Nothing can be said yet" in done.content.decode()
    stale = browser.post(address, body | {"deadline": "2100-05-02T00:00"})
    assert stale.status_code == 409

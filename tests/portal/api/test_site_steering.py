"""Sites opened and closed at the API: by hand, by downtimes."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from tests import factories


@pytest.fixture
def sam(people: SimpleNamespace, as_user) -> APIClient:
    factories.site("UW")
    return as_user(people.sam)


def downtime(**changes: Any) -> dict[str, Any]:
    start = timezone.now() - timedelta(minutes=5)
    return {
        "start": start.isoformat(),
        "end": (start + timedelta(hours=1)).isoformat(),
        "reason": "new disks",
    } | changes


def test_a_site_is_closed_and_opened_with_a_reason(sam: APIClient) -> None:
    banned = sam.post("/api/v1/sites/UW/ban/", {"reason": "eats jobs"}, format="json")
    drained = sam.post("/api/v1/sites/UW/drain/", {"reason": "better"}, format="json")
    opened = sam.post("/api/v1/sites/UW/unban/", {"reason": "repaired"}, format="json")

    assert banned.status_code == 200
    assert (banned.json()["state"], banned.json()["state_by"]) == ("banned", "sam")
    assert banned.json()["standing"]["kind"] == "banned"
    assert banned.json()["standing"]["reason"].endswith("eats jobs")
    assert drained.json()["standing"]["kind"] == "draining"
    assert opened.json()["standing"]["kind"] == ""
    events = sam.get("/api/v1/sites/UW/events/").json()["results"]
    assert [event["event"] for event in events][:3] == ["unban", "drain", "ban"]


def test_what_cannot_be_is_refused(sam: APIClient) -> None:
    for path, body, status in [
        ("UW/ban", {}, 400),
        ("UW/ban", {"reason": " "}, 400),
        ("UW/unban", {"reason": "why"}, 409),
        ("Nowhere/ban", {"reason": "why"}, 404),
    ]:
        answer = sam.post(f"/api/v1/sites/{path}/", body, format="json")
        assert answer.status_code == status, answer.content


def test_sites_are_narrowed_by_state(sam: APIClient) -> None:
    factories.site("Florida")
    sam.post("/api/v1/sites/UW/ban/", {"reason": "eats jobs"}, format="json")

    answer = sam.get("/api/v1/sites/?state=banned").json()

    assert [site["name"] for site in answer["results"]] == ["UW"]


def test_a_throttled_site_says_so(sam: APIClient) -> None:
    factories.turn()

    throttle = sam.get("/api/v1/sites/UW/").json()["throttle"]

    assert (throttle["allowance"], throttle["failures"]) == (None, 0)


def test_a_downtime_is_entered_listed_and_cancelled(sam: APIClient) -> None:
    made = sam.post("/api/v1/sites/UW/downtimes/", downtime(lead_time_s=60), format="json")

    assert made.status_code == 201
    body = made.json()
    assert (body["site"], body["author"], body["lead_time_s"]) == ("UW", "sam", 60)
    assert sam.get("/api/v1/sites/UW/").json()["standing"]["kind"] == "downtime"
    listed = sam.get("/api/v1/sites/UW/downtimes/").json()["results"]
    assert [each["id"] for each in listed] == [body["id"]]

    address = f"/api/v1/downtimes/{body['id']}/"
    assert [sam.delete(address).status_code for _ in range(2)] == [204, 409]
    assert sam.get(address).json()["cancelled_by"] == "sam"
    assert sam.get("/api/v1/sites/UW/").json()["standing"]["kind"] == ""


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"end": "2020-01-01T00:00:00Z"}, "end"),
        ({"start": "yesterday"}, "start"),
        ({"reason": ""}, "reason"),
        ({"lead_time_s": -1}, "lead_time_s"),
        ({"lead_time_s": 10**9}, "lead_time_s"),
    ],
)
def test_a_downtime_with_a_fault_is_refused(
    sam: APIClient, changes: dict[str, Any], field: str
) -> None:
    answer = sam.post("/api/v1/sites/UW/downtimes/", downtime(**changes), format="json")

    assert answer.status_code == 400
    assert [finding["field"] for finding in answer.json()["findings"]] == [field]


def test_what_is_not_there_is_not_found(sam: APIClient) -> None:
    assert sam.get("/api/v1/downtimes/1/").status_code == 404
    assert sam.delete("/api/v1/downtimes/1/").status_code == 404
    assert sam.get("/api/v1/sites/Nowhere/downtimes/").status_code == 404
    answer = sam.post("/api/v1/sites/Nowhere/downtimes/", downtime(), format="json")
    assert answer.status_code == 404

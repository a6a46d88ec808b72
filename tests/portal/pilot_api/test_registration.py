"""Registration of pilots, and requests without a good credential."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.portal.pilot_api.pilot_client import ENDED, NODE, OFFER, TOKEN, PilotClient

pytestmark = pytest.mark.django_db


def test_registration_tells_the_terms(fresh: PilotClient, settings: Any) -> None:
    answer = fresh.register()

    assert answer.status_code == 200
    assert answer.json() == {
        "heartbeat_s": settings.PILOTAGE["AGENT_HEARTBEAT_S"],
        "poll_s": settings.PILOTAGE["AGENT_POLL_S"],
        "idle_limit_s": settings.PILOTAGE["AGENT_IDLE_LIMIT_S"],
        "lifetime_s": 86400.0,
        "fence": "auto",
        "network": "auto",
        "limits": {"wall_s": 86400, "memory_mb": 2000},
        "hold_after_failure_s": 1200,
        "shared_folders": [],
        "has_containers": False,
        "accounts": {},
    }


def test_a_registration_whose_answer_was_lost_can_be_repeated(registered: PilotClient) -> None:
    assert registered.register().status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"secret": "guessed"},
        {"secret": ""},
        {"pilot": str(uuid4())},
        {"pilot": "not-a-uuid"},
    ],
)
def test_a_wrong_secret_gets_401_and_nothing_else(
    fresh: PilotClient, changes: dict[str, str]
) -> None:
    answer = fresh.register(**changes)

    assert answer.status_code == 401
    problem = answer.json()
    assert problem.keys() == {"type", "title", "status", "detail"}
    assert (problem["title"], problem["status"]) == ("Unauthorized", 401)
    fresh.pilot.refresh_from_db()
    assert fresh.pilot.state == "submitted"


def test_a_used_secret_gets_401(registered: PilotClient) -> None:
    assert registered.register(token="cd" * 32).status_code == 401


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"token": "short"}, "token"),
        ({"token": None}, "token"),
        ({"secret": 5}, "secret"),
        ({"node": []}, "node"),
        ({"node": {**NODE, "cores": "8"}}, "node.cores"),
        ({"node": {**NODE, "cores": True}}, "node.cores"),
        ({"node": {**NODE, "hostname": "a\0b"}}, "node.hostname"),
        ({"node": {**NODE, "hostname": "a\udcffb"}}, "node.hostname"),
        ({"secret": "\ud800"}, "secret"),
        ({"node": {**NODE, "memory_mb": -1}}, "node.memory_mb"),
        ({"node": {**NODE, "slot_gpus": -1}}, "node.slot_gpus"),
        ({"node": {**NODE, "disk_mb": 2**53 + 1}}, "node.disk_mb"),
        ({"node": {"hostname": "wn1"}}, "node.platform"),
    ],
)
def test_a_faulty_registration_is_told_its_field(
    fresh: PilotClient, changes: dict[str, Any], field: str
) -> None:
    answer = fresh.register(**changes)

    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert [each["field"] for each in answer.json()["errors"]] == [field]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(fresh: PilotClient, body: bytes) -> None:
    assert fresh.post("register", body).status_code == 400


def test_a_body_without_end_is_not_read(fresh: PilotClient) -> None:
    assert fresh.post("register", b" " * 300_000).status_code == 413


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer x", "Bearer x:y", f"Bearer {uuid4()}:{TOKEN}", f"Basic {TOKEN}"],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "heartbeat"),
        ("POST", "claim"),
        ("POST", "end"),
        ("POST", "jobs/1/1/report"),
        ("GET", "jobs/1/1/inputs/in.txt"),
        ("PUT", "jobs/1/1/files/output/out.txt"),
    ],
)
def test_without_a_good_token_everything_is_401(
    registered: PilotClient, method: str, path: str, header: str
) -> None:
    answer = registered.request(method, path, {}, Authorization=header)

    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"


def test_a_token_of_other_letters_is_401(registered: PilotClient) -> None:
    header = f"Bearer {registered.pilot.uuid}:\u00e9"

    answer = registered.request("POST", "jobs/1/1/report", ENDED, Authorization=header)

    assert answer.status_code == 401


def test_a_pilot_that_has_not_registered_has_no_token(fresh: PilotClient) -> None:
    assert fresh.post("claim", OFFER).status_code == 401


def test_another_method_is_told_the_right_one(registered: PilotClient) -> None:
    answer = registered.request("GET", "claim")

    assert answer.status_code == 405
    assert answer["Allow"] == "POST"

"""Reports with an attached claim: two messages in one request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from tests.portal.pilot_api.pilot_client import ENDED, OFFER, PilotClient
from wms.core.actors import Actor
from wms.core.database.hex_field import stored_key
from wms.jobs import operations
from wms.jobs.models import Attempt, Job, JobEvent
from wms.pilots.models import Pilot

pytestmark = pytest.mark.django_db

KEY = "ab" * 16


def ended(**changes: Any) -> dict[str, Any]:
    """The report of an end with a claim in it."""
    return ENDED | {"claim": OFFER | {"claim": KEY} | changes}


@pytest.fixture
def two_jobs(make_job: Callable[..., int]) -> tuple[int, int]:
    return make_job(), make_job()


@pytest.fixture
def first(registered: PilotClient, two_jobs: tuple[int, int]) -> dict[str, Any]:
    """The job that the pilot, which has one core, runs; another one waits."""
    job = registered.claim()
    registered.put(f"{path_of(job)}/files/output/out.txt", b"x")
    return job


def path_of(job: dict[str, Any]) -> str:
    return f"jobs/{job['job']}/{job['attempt']}"


def test_the_answer_has_the_next_job_in_the_place_that_the_ended_one_leaves(
    registered: PilotClient, two_jobs: tuple[int, int], first: dict[str, Any]
) -> None:
    answer = registered.post(f"{path_of(first)}/report", ended()).json()

    assert answer["accepted"] is True
    (other,) = set(two_jobs) - {first["job"]}
    assert answer["claim"] == registered.ask(claim=KEY).json()
    assert answer["claim"]["job"]["job"] == other
    assert Job.objects.get(pk=first["job"]).state == "done"


def test_a_repetition_ends_nothing_twice_and_is_given_the_same_job(
    registered: PilotClient, first: dict[str, Any]
) -> None:
    answers = [registered.post(f"{path_of(first)}/report", ended()).json() for _ in range(2)]

    assert answers[0] == answers[1]
    assert JobEvent.objects.filter(event="complete").count() == 1
    assert Attempt.objects.filter(outcome="").count() == 1


def test_without_a_job_the_claim_in_the_answer_gives_its_reason(
    registered: PilotClient, first: dict[str, Any]
) -> None:
    answer = registered.post(f"{path_of(first)}/report", ended(memory_mb=0, cores=0)).json()

    assert answer["claim"]["job"] is None
    assert "no core" in answer["claim"]["reason"]
    assert Attempt.objects.get().outcome == "done"


def test_a_report_without_a_claim_is_answered_without_one(
    registered: PilotClient, first: dict[str, Any]
) -> None:
    answer = registered.post(f"{path_of(first)}/report", ENDED | {"claim": None}).json()

    assert answer == {"accepted": True}
    assert Attempt.objects.filter(outcome="").count() == 0


def test_only_the_report_of_an_end_claims(registered: PilotClient, first: dict[str, Any]) -> None:
    body = ended() | {"event": "started"}

    assert registered.post(f"{path_of(first)}/report", body).json() == {"accepted": True}
    assert Attempt.objects.count() == 1


def test_a_report_stands_when_the_pilot_may_claim_no_more(
    registered: PilotClient, first: dict[str, Any]
) -> None:
    Pilot.objects.update(state="failed", state_reason="silent")

    answer = registered.post(f"{path_of(first)}/report", ended())

    assert answer.json() == {"accepted": True, "claim": None}
    assert Job.objects.get(pk=first["job"]).state == "done"


def test_a_report_stands_when_the_database_refuses_the_claim(
    registered: PilotClient, two_jobs: tuple[int, int], first: dict[str, Any]
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE jobs_attempt ADD CHECK (claim_key <> %s)", [stored_key(KEY)])

    answer = registered.post(f"{path_of(first)}/report", ended())

    assert answer.json() == {"accepted": True, "claim": None}
    assert Job.objects.get(pk=first["job"]).state == "done"
    (other,) = set(two_jobs) - {first["job"]}
    assert registered.claim()["job"] == other


def test_a_late_report_is_refused_and_nothing_is_claimed(
    registered: PilotClient, two_jobs: tuple[int, int], first: dict[str, Any]
) -> None:
    operations.kill_jobs([first["job"]], actor=Actor.system("test"), reason="no longer wanted")

    answer = registered.post(f"{path_of(first)}/report", ended())

    assert answer.status_code == 409
    assert set(Job.objects.values_list("state", flat=True)) == {"killed", "waiting"}


@pytest.mark.parametrize(
    ("claim", "field"),
    [
        ([], "claim"),
        (OFFER, "claim.claim"),
        (OFFER | {"claim": KEY, "cores": -1}, "claim.cores"),
        (OFFER | {"claim": KEY, "tags": [1]}, "claim.tags.0"),
    ],
)
def test_a_faulty_claim_is_told_its_field_and_its_report_changes_nothing(
    registered: PilotClient, first: dict[str, Any], claim: object, field: str
) -> None:
    answer = registered.post(f"{path_of(first)}/report", ENDED | {"claim": claim})

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == field
    assert Attempt.objects.get().outcome == ""


def test_the_token_of_an_attempt_reports_and_does_not_claim(
    registered: PilotClient, first: dict[str, Any]
) -> None:
    payloads_side = PilotClient(registered.pilot, token=first["token"])

    assert payloads_side.post(f"{path_of(first)}/report", ended()).status_code == 401
    assert Attempt.objects.get().outcome == ""
    assert payloads_side.post(f"{path_of(first)}/report", ENDED).json() == {"accepted": True}

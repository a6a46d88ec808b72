"""Reports of a running attempt at the pilot API: files, reports, last message."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.portal.pilot_api.pilot_client import ENDED, SECRET, PilotClient
from wms.core.actors import Actor
from wms.jobs import operations
from wms.jobs.models import Attempt, AttemptFile
from wms.pilots.models import Pilot
from wms.pilots.protocol.registration import secret_digest
from wms.sites.models import Queue

pytestmark = pytest.mark.django_db


def test_inputs_come_from_the_sandbox_of_the_attempt(registered: PilotClient, attempt: str) -> None:
    answer = registered.request("GET", f"{attempt}/inputs/in.txt")

    assert b"".join(answer) == b"in"
    assert answer["Content-Length"] == "2"
    assert registered.request("GET", f"{attempt}/inputs/other").status_code == 404


def test_no_pilot_sees_the_job_of_another(queue: Queue, attempt: str) -> None:
    other = PilotClient(
        Pilot.objects.create(queue=queue, batch="other", secret_sha256=secret_digest(SECRET))
    )
    other.register()

    assert other.request("GET", f"{attempt}/inputs/in.txt").status_code == 404
    assert other.post(f"{attempt}/report", {"event": "started"}).status_code == 404
    assert other.put(f"{attempt}/files/output/out.txt", b"x").status_code == 404


def test_a_file_is_stored_and_a_repetition_replaces_it(
    registered: PilotClient, attempt: str
) -> None:
    registered.put(f"{attempt}/files/output/out.txt", b"first")

    answer = registered.put(f"{attempt}/files/output/out.txt", b"second")

    digest = hashlib.sha256(b"second").hexdigest()
    assert answer.json() == {"sha256": digest, "size_bytes": 6}
    assert AttemptFile.objects.get(kind="output", path="out.txt").blob_id == digest


@pytest.mark.parametrize(
    ("place", "sha256", "field"),
    [
        ("output/unannounced.txt", None, "path"),
        ("output/in.txt", None, "path"),
        ("stdout/other", None, "path"),
        ("core/core", None, "kind"),
        ("output/out.txt", "", "X-Content-SHA256"),
        ("output/out.txt", "xyz", "X-Content-SHA256"),
        ("output/out.txt", "0" * 64, "sha256"),
    ],
)
def test_a_faulty_file_is_told_what_is_wrong_and_not_kept(
    registered: PilotClient, attempt: str, place: str, sha256: str | None, field: str
) -> None:
    answer = registered.put(f"{attempt}/files/{place}", b"content", sha256)

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == field
    assert not AttemptFile.objects.exists()


def test_a_file_that_is_too_large_is_refused(
    registered: PilotClient, attempt: str, settings: Any
) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_UPLOAD_BYTES": 3}

    assert registered.put(f"{attempt}/files/output/out.txt", b"1234").status_code == 413


def test_reports_may_be_repeated(registered: PilotClient, attempt: str) -> None:
    registered.put(f"{attempt}/files/output/out.txt", b"x")

    answers = [
        registered.post(f"{attempt}/report", report)
        for report in ({"event": "started"}, {"event": "started"}, ENDED, ENDED)
    ]

    assert [answer.json() for answer in answers] == [{"accepted": True}] * 4
    assert Attempt.objects.get().outcome == "done"


def test_an_attempt_that_was_taken_away_is_answered_with_a_conflict(
    registered: PilotClient, attempt: str, job_id: int
) -> None:
    operations.kill_jobs([job_id], actor=Actor.system("test"), reason="no longer wanted")

    assert registered.post(f"{attempt}/report", {"event": "started"}).status_code == 409
    assert registered.post(f"{attempt}/report", ENDED).status_code == 409
    assert registered.put(f"{attempt}/files/output/out.txt", b"x").status_code == 409
    assert registered.request("GET", f"{attempt}/inputs/in.txt").status_code == 409


def test_a_job_that_was_not_run_waits_again(registered: PilotClient, attempt: str) -> None:
    report = {"event": "not_run", "reason": "disk full"}

    assert registered.post(f"{attempt}/report", report).json() == {"accepted": True}
    assert Attempt.objects.get().reason == "disk full"
    assert registered.claim()["attempt"] == 2


@pytest.mark.parametrize(
    ("report", "field"),
    [
        ({"event": "exploded"}, "event"),
        ({}, "event"),
        ({"event": "not_run", "reason": ""}, "reason"),
        (ENDED | {"exit_code": "0"}, "exit_code"),
        (ENDED | {"exit_code": 1000}, "exit_code"),
        (ENDED | {"wall_s": float("nan")}, "wall_s"),
        (ENDED | {"cpu_s": -1}, "cpu_s"),
        (ENDED | {"missing_outputs": [None]}, "missing_outputs.0"),
        (ENDED | {"reason": "x" * 5000}, "reason"),
        (ENDED | {"reason": "\ud800"}, "reason"),
        (ENDED | {"missing_outputs": ["\udc80"]}, "missing_outputs.0"),
        ({"event": "not_run", "reason": "\ud800"}, "reason"),
    ],
)
def test_a_faulty_report_is_told_its_field_and_changes_nothing(
    registered: PilotClient, attempt: str, report: dict[str, Any], field: str
) -> None:
    answer = registered.post(f"{attempt}/report", report)

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == field
    assert Attempt.objects.get().outcome == ""


def test_a_goodbye_ends_the_pilot_and_frees_its_job(registered: PilotClient, attempt: str) -> None:
    body = {"reason": "terminated", "detail": ""}

    answers = [registered.post("end", body), registered.post("end", body)]

    assert [answer.json() for answer in answers] == [{}, {}]
    registered.pilot.refresh_from_db()
    assert registered.pilot.state == "done"
    assert Attempt.objects.get().outcome == "lost"


def test_a_goodbye_needs_a_detail_that_is_a_text(registered: PilotClient) -> None:
    answer = registered.post("end", {"reason": "error", "detail": "\ud800"})

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "detail"


def test_a_goodbye_needs_a_known_reason(registered: PilotClient) -> None:
    answer = registered.post("end", {"reason": "bored", "detail": ""})

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "reason"

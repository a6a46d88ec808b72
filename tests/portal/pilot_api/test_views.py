"""What the pilot API accepts and refuses; the whole conversation is tested with a real agent."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.http import HttpResponse
from django.test import Client

from matching.needs import Needs
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs import blobs, services
from wms.jobs.models import Attempt, AttemptFile
from wms.pilots.bundle import agent_bundle
from wms.pilots.models import Pilot
from wms.pilots.services import secret_digest
from wms.sites.models import Queue, Site

pytestmark = pytest.mark.django_db

SECRET = "once"
TOKEN = "ab" * 32
NODE = {
    "hostname": "wn1",
    "platform": "linux-x86_64",
    "cores": 8,
    "memory_mb": 16000,
    "disk_mb": 50000,
    "python": "3.9.2",
    "agent_version": "0.1.0",
}
OFFER = {
    "cpu_time_s": 3600,
    "cores": 1,
    "memory_mb": 2000,
    "disk_mb": 1000,
    "platform": "linux-x86_64",
    "tags": [],
}
ENDED = {
    "event": "ended",
    "exit_code": 0,
    "signal": None,
    "wall_s": 1.5,
    "cpu_s": 1.0,
    "max_rss_mb": 12,
    "reason": "",
    "missing_outputs": [],
}


@dataclass
class PilotClient:
    """A pilot in the form of its requests."""

    pilot: Pilot
    token: str = TOKEN

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> HttpResponse:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        credential = {"Authorization": f"Bearer {self.pilot.uuid}:{self.token}"} | headers
        return Client(enforce_csrf_checks=True, headers=credential).generic(
            method, f"/pilot/v1/{path}", content, content_type="application/json"
        )

    def post(self, path: str, body: Any) -> HttpResponse:
        return self.request("POST", path, body)

    def put(self, path: str, content: bytes, sha256: str | None = None) -> HttpResponse:
        digest = hashlib.sha256(content).hexdigest() if sha256 is None else sha256
        return self.request("PUT", path, content, **{"X-Content-SHA256": digest})

    def register(self, **changes: Any) -> HttpResponse:
        body = {"pilot": str(self.pilot.uuid), "secret": SECRET, "token": self.token, "node": NODE}
        return self.post("register", body | changes)

    def claim(self) -> dict[str, Any]:
        job: dict[str, Any] = self.post("claim", OFFER).json()["job"]
        return job


@pytest.fixture(autouse=True)
def _blobs(settings: Any, tmp_path: Path) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "BLOBS_DIR": str(tmp_path)}


@pytest.fixture
def queue() -> Queue:
    return Queue.objects.create(site=Site.objects.create(name="UW"), name="short", element="local")


@pytest.fixture
def fresh(queue: Queue) -> PilotClient:
    return PilotClient(
        Pilot.objects.create(queue=queue, batch="batch", secret_sha256=secret_digest(SECRET))
    )


@pytest.fixture
def registered(fresh: PilotClient) -> PilotClient:
    assert fresh.register().status_code == 200
    return fresh


@pytest.fixture
def job_id() -> int:
    alice = User.objects.create_user("alice")
    stored = {"run.sh": blobs.store_bytes(b"#!/bin/sh\n"), "in.txt": blobs.store_bytes(b"in")}
    spec = services.JobSpec(
        name="analysis",
        executable="run.sh",
        needs=Needs.of("alice"),
        arguments=("1",),
        environment={"A": "b"},
        input_files=("in.txt",),
        output_files=("out.txt",),
        wall_limit_s=60,
    )
    workspace = services.create_workspace(alice, stored)
    [pk] = services.submit_jobs([spec], owner=alice, workspace=workspace, actor=Actor.person(alice))
    return pk


@pytest.fixture
def attempt(registered: PilotClient, job_id: int) -> str:
    """The path of a claimed attempt."""
    job = registered.claim()
    return f"jobs/{job['job']}/{job['attempt']}"


def test_the_agent_can_be_fetched_by_anybody(client: Client) -> None:
    answer = client.get("/pilot/v1/agent.pyz")

    assert hashlib.sha256(answer.content).hexdigest() == agent_bundle().sha256


def test_registration_tells_the_terms(fresh: PilotClient, settings: Any) -> None:
    answer = fresh.register()

    assert answer.status_code == 200
    assert answer.json() == {
        "heartbeat_s": settings.PILOTAGE["AGENT_HEARTBEAT_S"],
        "poll_s": settings.PILOTAGE["AGENT_POLL_S"],
        "idle_limit_s": settings.PILOTAGE["AGENT_IDLE_LIMIT_S"],
        "lifetime_s": 86400.0,
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
    assert answer.json() == {
        "type": "about:blank",
        "title": "Unauthorized",
        "status": 401,
        "detail": "The credential is not accepted.",
    }
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


def test_a_pilot_that_has_not_registered_has_no_token(fresh: PilotClient) -> None:
    assert fresh.post("claim", OFFER).status_code == 401


def test_another_method_is_told_the_right_one(registered: PilotClient) -> None:
    answer = registered.request("GET", "claim")

    assert answer.status_code == 405
    assert answer["Allow"] == "POST"


def test_a_claimed_job_comes_with_all_that_is_needed_to_run_it(
    registered: PilotClient, job_id: int
) -> None:
    job = registered.claim()

    inputs = {each.pop("path"): each for each in job.pop("inputs")}
    assert job == {
        "job": job_id,
        "attempt": 1,
        "name": "analysis",
        "executable": "run.sh",
        "arguments": ["1"],
        "environment": {"A": "b"},
        "outputs": ["out.txt"],
        "wall_limit_s": 60,
    }
    assert inputs["in.txt"] == {"sha256": hashlib.sha256(b"in").hexdigest(), "size_bytes": 2}
    assert set(inputs) == {"in.txt", "run.sh"}


def test_without_work_the_answer_gives_a_reason(registered: PilotClient) -> None:
    answer = registered.post("claim", OFFER).json()

    assert answer["job"] is None
    assert answer["reason"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cores": 2**31}, "cores"),
        ({"cpu_time_s": 1.5}, "cpu_time_s"),
        ({"memory_mb": 2**53 + 1}, "memory_mb"),
        ({"tags": "gpu"}, "tags"),
        ({"tags": ["gpu", 1]}, "tags.1"),
        ({"platform": None}, "platform"),
        ({"platform": "\udfff"}, "platform"),
        ({"tags": ["gpu", "\ud800"]}, "tags.1"),
    ],
)
def test_a_faulty_offer_is_told_its_field(
    registered: PilotClient, changes: dict[str, Any], field: str
) -> None:
    answer = registered.post("claim", OFFER | changes)

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == field


def test_a_node_with_a_scratch_of_petabytes_may_have_pilots(
    fresh: PilotClient, job_id: int
) -> None:
    large = {"memory_mb": 3 * 1024**3, "disk_mb": 2**53}

    assert fresh.register(node=NODE | large).status_code == 200
    claimed = fresh.post("claim", OFFER | large | {"cpu_time_s": 2**40})

    assert claimed.json()["job"]["job"] == job_id
    fresh.pilot.refresh_from_db()
    assert fresh.pilot.node == NODE | large


def test_a_heartbeat_tells_which_attempts_to_stop(registered: PilotClient, attempt: str) -> None:
    job, number = (int(part) for part in attempt.split("/")[1:])
    body = {"jobs": [{"job": job, "attempt": number}, {"job": job, "attempt": 9}], "load": {}}

    answer = registered.post("heartbeat", body)

    assert answer.json() == {"commands": [{"command": "kill", "job": job, "attempt": 9}]}


def test_a_pilot_that_was_given_up_is_to_stop_everything(registered: PilotClient) -> None:
    Pilot.objects.filter(pk=registered.pilot.pk).update(state="failed")

    answer = registered.post("heartbeat", {"jobs": []})

    assert answer.json() == {"commands": [{"command": "drain"}]}
    assert registered.post("claim", OFFER).status_code == 401


def test_a_faulty_heartbeat_is_told_its_field(registered: PilotClient) -> None:
    answer = registered.post("heartbeat", {"jobs": [{"job": 1, "attempt": "1"}]})

    assert answer.json()["errors"][0]["field"] == "jobs.0.attempt"


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
    services.kill_jobs([job_id], actor=Actor.system("test"), reason="no longer wanted")

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
    assert Attempt.objects.get().outcome == "not_run"


def test_a_goodbye_needs_a_detail_that_is_a_text(registered: PilotClient) -> None:
    answer = registered.post("end", {"reason": "error", "detail": "\ud800"})

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "detail"


def test_a_goodbye_needs_a_known_reason(registered: PilotClient) -> None:
    answer = registered.post("end", {"reason": "bored", "detail": ""})

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "reason"

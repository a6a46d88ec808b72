"""Claims and heartbeats at the pilot API: jobs, refusals, commands."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.portal.pilot_api.pilot_client import NODE, OFFER, PilotClient
from wms.core.models import User
from wms.jobs.models import Job, JobEvent
from wms.pilots.models import Pilot
from wms.sites.models import Queue
from wms.taskqueues.models import TaskQueue, WaitingJob

pytestmark = pytest.mark.django_db


def test_a_claimed_job_comes_with_all_that_is_needed_to_run_it(
    registered: PilotClient, job_id: int
) -> None:
    job = registered.claim()

    inputs = {each.pop("path"): each for each in job.pop("inputs")}
    assert re.fullmatch("[0-9a-f]{64}", job.pop("token"))
    assert job == {
        "job": job_id,
        "attempt": 1,
        "name": "analysis",
        "owner": "alice",
        "owner_group": "",
        "executable": "run.sh",
        "arguments": ["1"],
        "environment": {"A": "b"},
        "outputs": ["out.txt"],
        "wall_limit_s": 60,
        "cores": 1,
        "memory_mb": 0,
        "gpus": 0,
        "cpu_time_s": 500,
        "disk_mb": 0,
    }
    assert inputs["in.txt"] == {"sha256": hashlib.sha256(b"in").hexdigest(), "size_bytes": 2}
    assert set(inputs) == {"in.txt", "run.sh"}


def test_without_work_the_answer_gives_a_reason(registered: PilotClient) -> None:
    answer = registered.ask().json()

    assert answer["job"] is None
    assert "UW/short" in answer["reason"]
    assert answer["reason"].endswith("time 3600 s")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cores": 10**9}, "cores"),
        ({"cores": [1]}, "cores"),
        ({"cores": -1}, "cores"),
        ({"cpu_time_s": 1.5}, "cpu_time_s"),
        ({"cpu_time_s": -1}, "cpu_time_s"),
        ({"gpus": 10**9}, "gpus"),
        ({"disk_mb": "much"}, "disk_mb"),
        ({"claim": "AB" * 16}, "claim"),
        ({"claim": "ab" * 32}, "claim"),
        ({"claim": 7}, "claim"),
        ({"required_tags": [["gpu"]]}, "required_tags.0"),
        ({"memory_mb": 2**53 + 1}, "memory_mb"),
        ({"tags": "gpu"}, "tags"),
        ({"tags": ["gpu", 1]}, "tags.1"),
        ({"platform": None}, "platform"),
        ({"platform": "\udfff"}, "platform"),
        ({"tags": ["gpu", "\ud800"]}, "tags.1"),
    ],
)
def test_a_faulty_offer_is_told_its_field_and_given_nothing(
    registered: PilotClient, job_id: int, changes: dict[str, Any], field: str
) -> None:
    answer = registered.ask(**changes)

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == field
    assert WaitingJob.objects.filter(job_id=job_id).exists()


@pytest.mark.parametrize("field", ["claim", *OFFER])
def test_an_offer_that_lacks_something_is_told_what(
    registered: PilotClient, job_id: int, field: str
) -> None:
    body = OFFER | {"claim": "ab" * 16}
    del body[field]

    answer = registered.post("claim", body)

    assert answer.status_code == 400
    assert answer.json()["errors"] == [{"field": field, "message": "is missing"}]
    assert WaitingJob.objects.filter(job_id=job_id).exists()


def test_a_node_with_a_scratch_of_petabytes_may_have_pilots(
    fresh: PilotClient, job_id: int
) -> None:
    large = {"memory_mb": 3 * 1024**3, "disk_mb": 2**53}

    assert fresh.register(node=NODE | large).status_code == 200
    claimed = fresh.ask(**large, cpu_time_s=2**40)

    assert claimed.json()["job"]["job"] == job_id
    fresh.pilot.refresh_from_db()
    assert fresh.pilot.node == NODE | large


def test_a_heartbeat_tells_which_attempts_to_stop(registered: PilotClient, attempt: str) -> None:
    job, number = (int(part) for part in attempt.split("/")[1:])
    body = {"jobs": [{"job": job, "attempt": number}, {"job": job, "attempt": 9}], "load": {}}

    answer = registered.post("heartbeat", body)

    assert answer.json() == {"commands": [{"command": "kill", "job": job, "attempt": 9}]}


def test_a_pilot_that_was_given_up_is_to_stop_everything(registered: PilotClient) -> None:
    Pilot.objects.filter(pk=registered.pilot.pk).update(state="failed", state_reason="silent")

    answer = registered.post("heartbeat", {"jobs": []})

    assert answer.json() == {"commands": [{"command": "drain", "reason": "silent"}]}
    assert registered.ask().status_code == 401


def test_a_faulty_heartbeat_is_told_its_field(registered: PilotClient) -> None:
    answer = registered.post("heartbeat", {"jobs": [{"job": 1, "attempt": "1"}]})

    assert answer.json()["errors"][0]["field"] == "jobs.0.attempt"


def test_a_pilot_gets_no_job_that_its_queue_was_not_made_for(
    registered: PilotClient, job_id: int
) -> None:
    TaskQueue.objects.update(cores=64, memory_mb=999_999, tags=["gpu"])

    assert registered.claim(cores=64, memory_mb=999_999, tags=["gpu"]) is None


def test_the_same_key_gives_the_same_job_and_another_key_another_one(
    registered: PilotClient, make_job: Callable[..., int]
) -> None:
    Queue.objects.update(cores=2)
    jobs = [make_job(), make_job()]

    first = registered.claim(cores=2, claim="ab" * 16)
    again = registered.claim(cores=2, claim="ab" * 16)
    other = registered.claim(cores=1)

    assert first == again
    assert sorted([first["job"], other["job"]]) == jobs


def test_a_job_learns_what_it_may_use(
    registered: PilotClient, make_job: Callable[..., int]
) -> None:
    Queue.objects.update(cores=4, gpus=2)
    make_job(max_cores=8, memory_mb=500, gpus=1)

    job = registered.claim(cores=3, gpus=2)

    assert (job["cores"], job["memory_mb"], job["gpus"]) == (3, 500, 1)


def test_a_full_pilot_is_told_so(registered: PilotClient, make_job: Callable[..., int]) -> None:
    make_job()
    make_job()
    registered.claim()

    answer = registered.ask()

    assert answer.json()["job"] is None
    assert "no core" in answer.json()["reason"]


def test_a_pilot_may_take_only_jobs_with_more_tags_than_its_queue_demands(
    registered: PilotClient, make_job: Callable[..., int]
) -> None:
    Queue.objects.update(tags=["ssd", "test"], required_tags=["ssd"])
    make_job()
    make_job(tags=["ssd"])
    tagged = make_job(tags=["ssd", "test"])

    assert registered.claim(required_tags=["test"])["job"] == tagged


def test_a_job_with_an_image_goes_only_to_a_pilot_that_starts_containers(
    registered: PilotClient, make_job: Callable[..., int]
) -> None:
    Queue.objects.update(tags=["apptainer"])
    job = make_job(tags=["apptainer"])

    assert registered.claim() is None
    assert registered.claim(claim="ab" * 16, tags=["apptainer"])["job"] == job


def test_a_pilot_that_starts_containers_gets_no_job_with_an_image_behind_another_queue(
    registered: PilotClient, make_job: Callable[..., int]
) -> None:
    make_job(tags=["apptainer"])

    assert registered.claim(tags=["apptainer"]) is None


def test_a_claim_whose_job_was_given_back_gets_no_second_one(
    registered: PilotClient, make_job: Callable[..., int]
) -> None:
    make_job()
    make_job()
    job = registered.claim(claim="ab" * 16)
    report = {"event": "not_run", "reason": "disk full"}
    registered.post(f"jobs/{job['job']}/1/report", report)

    answer = registered.ask(claim="ab" * 16)

    assert answer.json()["job"] is None
    assert answer.json()["reason"].endswith("not_run")


def test_requirements_are_judged_by_what_the_pilot_told_of_its_node(
    registered: PilotClient, make_job: Callable[..., int]
) -> None:
    make_job(requirements='NodePython == "2.7"')
    fits = make_job(requirements='Machine == "wn1" && NodeSlotCores == 8')

    assert registered.claim()["job"] == fits
    assert registered.claim() is None


def test_a_private_pilot_is_given_the_jobs_of_its_owner_whatever_it_says(
    registered: PilotClient, job_id: int
) -> None:
    bob = User.objects.create_user("bob")
    Pilot.objects.update(owner=bob)

    assert registered.claim(owner="alice", owner_group="", pilot_type="generic") is None

    Pilot.objects.update(owner=User.objects.get(username="alice"))
    assert registered.claim()["job"] == job_id


def told(attempt: str, attributes: object) -> dict[str, Any]:
    """A heartbeat in which the payload of one attempt tells these attributes."""
    job, number = (int(part) for part in attempt.split("/")[1:])
    return {"jobs": [{"job": job, "attempt": number, "attributes": attributes}], "load": {}}


def test_what_a_payload_tells_becomes_part_of_its_job(
    registered: PilotClient, attempt: str, job_id: int
) -> None:
    body = told(attempt, {"ProvisionerState": 2, "Where": 'in "B"'})

    answers = [registered.post("heartbeat", body) for _ in range(2)]

    assert [answer.json() for answer in answers] == [{"commands": []}] * 2
    attributes = Job.objects.get(pk=job_id).attributes
    assert (attributes["ProvisionerState"], attributes["Where"]) == (2, '"in \\"B\\""')
    assert JobEvent.objects.filter(job_id=job_id, event="update").count() == 1


def test_what_is_told_of_an_attempt_that_is_not_open_counts_for_nothing(
    registered: PilotClient, attempt: str, job_id: int
) -> None:
    answer = registered.post("heartbeat", told(f"jobs/{job_id}/9", {"A": 1}))

    assert answer.json()["commands"][0]["command"] == "kill"
    assert "A" not in Job.objects.get(pk=job_id).attributes


@pytest.mark.parametrize(
    ("attributes", "field"),
    [
        ([], "attributes"),
        ({f"A{number}": 1 for number in range(21)}, "attributes"),
        ({"A": 1.5}, "attributes.A"),
        ({"A": True}, "attributes.A"),
        ({"A": None}, "attributes.A"),
        ({"A": 2**63}, "attributes.A"),
        ({"A": "x" * 1001}, "attributes.A"),
        ({"A": "\0"}, "attributes.A"),
        ({"1A": 1}, "attributes"),
        ({"A b": 1}, "attributes"),
        ({"A" * 65: 1}, "attributes"),
    ],
)
def test_faulty_attributes_are_told_their_field(
    registered: PilotClient, attempt: str, attributes: object, field: str
) -> None:
    answer = registered.post("heartbeat", told(attempt, attributes))

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == f"jobs.0.{field}"


def test_an_attempt_that_is_over_but_cannot_be_reported_holds_nothing_of_the_slot(
    registered: PilotClient, make_job: Callable[..., int]
) -> None:
    make_job()
    stuck = registered.claim()
    second = make_job()
    over = [{"job": stuck["job"], "attempt": stuck["attempt"]}]

    assert "no core" in registered.ask().json()["reason"]
    assert registered.ask(unreported=[{**over[0], "attempt": 2}]).json()["job"] is None
    assert registered.claim(unreported=over)["job"] == second
    assert "no core" in registered.ask(unreported=over).json()["reason"]
    assert Job.objects.get(pk=stuck["job"]).state == "matched"


@pytest.mark.parametrize("unreported", ["1", [1], [{"job": 1}], [{"job": 1, "attempt": 1}] * 1001])
def test_attempts_that_are_over_are_named_in_full(
    registered: PilotClient, unreported: object
) -> None:
    answer = registered.ask(unreported=unreported)

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"].startswith("unreported")

"""What the pilot API tells a pilot that asks for work, and one that beats."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.portal.pilot_api.pilot_client import NODE, OFFER, PilotClient
from wms.pilots.models import Pilot
from wms.taskqueues.models import TaskQueue

pytestmark = pytest.mark.django_db


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


def test_a_pilot_gets_no_job_that_its_queue_was_not_made_for(
    registered: PilotClient, job_id: int
) -> None:
    TaskQueue.objects.update(cores=64, memory_mb=999_999, tags=["gpu"])

    greedy = OFFER | {"cores": 64, "memory_mb": 999_999, "tags": ["gpu"]}

    assert registered.post("claim", greedy).json()["job"] is None

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from wms.accounting.core_seconds import CoreSeconds, Use, add_uses
from wms.jobs.models import Attempt, Job
from wms.jobs.output.streams import append_to_stream
from wms.pilots.models import Pilot
from wms.pilots.protocol.logs import append_to_log

pytestmark = pytest.mark.django_db


@pytest.fixture
def claimed() -> factories.Claimed:
    people = factories.people()
    worker = factories.pilot(factories.site().queues.get())
    factories.job(people.alice)
    made = factories.claim(worker)
    assert made is not None
    return made.start()


def call(method: str, path: str, who: str, body: object = None):
    client = Client()
    client.force_login(factories.person(who))
    return client.generic(method, f"/api/v1/{path}", *_encoded(client, body))


def _encoded(client: Client, body: object) -> tuple[bytes, str]:
    return client._encode_json(body or {}, "application/json").encode(), "application/json"


def test_a_job_is_killed(claimed: factories.Claimed) -> None:
    path = f"jobs/{claimed.job.pk}/kill/"

    assert call("POST", path, "alice").status_code == 400
    assert call("POST", path, "bob", {"reason": "x"}).status_code == 403
    answer = call("POST", path, "alice", {"reason": "wrong"})

    assert (answer.status_code, answer.json()["state"]) == (200, "killed")
    shown = call("GET", f"jobs/{claimed.job.pk}/", "alice").json()
    assert shown["state_cause"] == shown["events"][0]["cause"] == "person"
    assert call("POST", path, "alice", {"reason": "again"}).status_code == 409
    assert Attempt.objects.get().stopped_by == "server"


def test_output_is_asked_for_and_read_while_the_job_runs(claimed: factories.Claimed) -> None:
    path = f"jobs/{claimed.job.pk}"
    assert call("GET", f"{path}/stdout", "bob").status_code == 404

    assert call("POST", f"{path}/peek/", "alice").status_code == 202
    append_to_stream(
        claimed.job.pk, 1, pilot_id=claimed.pilot.pk, kind="stdout", offset=0, content=b"so far",
        now=timezone.now(),
    )  # fmt: skip
    tail = call("GET", f"{path}/stdout", "bob")

    assert (tail.content, tail["X-Full-Size-Bytes"]) == (b"so far", "6")
    whole = call("GET", f"{path}/stdout?full=1&attempt=1", "bob")
    assert b"".join(whole.streaming_content) == b"so far"


def test_the_file_of_the_end_goes_before_what_came_while_it_ran(
    claimed: factories.Claimed,
) -> None:
    append_to_stream(
        claimed.job.pk, 1, pilot_id=claimed.pilot.pk, kind="stdout", offset=0, content=b"part",
        now=timezone.now(),
    )  # fmt: skip
    claimed.send("stdout", "stdout", b"part and rest")

    assert call("GET", f"jobs/{claimed.job.pk}/stdout", "bob").content == b"part and rest"


def test_a_pilot_is_drained_and_tells_so(claimed: factories.Claimed) -> None:
    path = f"pilots/{claimed.pilot.uuid}"

    assert call("POST", f"{path}/drain/", "alice", {"reason": "x"}).status_code == 403
    assert call("POST", f"{path}/drain/", "sam").status_code == 400
    answer = call("POST", f"{path}/drain/", "sam", {"reason": "kernel"})

    assert (answer.status_code, answer.json()["drain_reason"]) == (200, "kernel")
    again = call("POST", f"jobs/{claimed.job.pk}/stop-after/", "sam", {"reason": "x"})
    assert again.status_code == 409


def test_the_log_of_a_pilot_is_read(claimed: factories.Claimed) -> None:
    path = f"pilots/{claimed.pilot.uuid}/log"
    assert call("GET", path, "bob").status_code == 404

    append_to_log(claimed.pilot.pk, offset=0, content=b"registered\n", now=timezone.now())

    assert call("GET", path, "bob").content == b"registered\n"
    assert call("GET", f"{path}?full=2", "bob").status_code == 400


def test_efficiency_is_told_in_core_seconds(db: None) -> None:
    today = timezone.now().date()
    add_uses([Use(today, "UW", "alice", CoreSeconds(useful_s=30.0, failed_s=10.0), attempts=2)])

    [line] = call("GET", "efficiency/", "bob").json()

    assert line["name"] == "UW"
    assert line["attempts"] == 2
    assert line["spent"] == {
        "useful_s": 30.0, "failed_s": 10.0, "lost_s": 0.0, "idle_s": 0.0, "validation_s": 0.0,
        "total_s": 40.0, "wasted_s": 10.0, "efficiency": 0.75,
    }  # fmt: skip
    faulty = call("GET", "efficiency/?by=planet", "bob")
    assert faulty.status_code == 400
    assert faulty.json()["findings"][0]["field"] == "by"


def test_a_job_tells_when_it_is_tried_again(claimed: factories.Claimed) -> None:
    again = timezone.now()
    Job.objects.update(state="received", not_before=again)

    shown = call("GET", f"jobs/{claimed.job.pk}/", "bob").json()

    assert shown["not_before"] is not None
    assert shown["attempts"][0]["stopped_by"] == ""
    assert Pilot.objects.count() == 1

"""Jobs, their attempts, and what they printed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from rest_framework.test import APIClient

from portal.api.downloads import TAIL_BYTES
from tests import factories
from wms.jobs.models import Job

URL = "/api/v1/jobs/"


def test_jobs_are_narrowed_by_dag_and_state(alice: APIClient, people: SimpleNamespace) -> None:
    single = factories.job(people.bob)
    dag = factories.running_dag(people.alice, node_count=2)

    of_dag = alice.get(f"{URL}?dag={dag.pk}").json()["results"]
    waiting = alice.get(f"{URL}?state=waiting&owner=bob").json()["results"]

    assert [job["name"] for job in of_dag] == ["A2", "A1"]
    assert [job["id"] for job in waiting] == [single.pk]


@pytest.mark.parametrize("value", ["x", "0", "-1", "1.5"])
def test_a_dag_that_is_no_number_is_refused(alice: APIClient, value: str) -> None:
    answer = alice.get(f"{URL}?dag={value}")

    assert [finding["field"] for finding in answer.json()["findings"]] == ["dag"]


def test_a_job_is_shown_with_its_attempts(alice: APIClient, people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice, node_count=1)
    pilot = factories.pilot()
    job = factories.run_job(pilot, exit_code=3)
    assert job is not None

    shown = alice.get(f"{URL}{job.pk}/").json()

    assert (shown["state"], shown["dag"]) == ("failed", dag.pk)
    assert shown["arguments"] == ["A1", "1"]
    assert shown["needs"]["sites"] == ["UW"]
    [attempt] = shown["attempts"]
    assert (attempt["pilot"], attempt["site_name"], attempt["host"]) == (
        str(pilot.uuid),
        "UW",
        "node1",
    )
    assert (attempt["outcome"], attempt["exit_code"], attempt["wall_s"]) == ("failed", 3, 1.5)
    assert {file["kind"] for file in attempt["files"]} == {"stdout", "stderr"}
    assert [event["event"] for event in shown["events"]] == ["fail", "start", "match", "enqueue"]


def test_a_job_without_a_dag_names_none(alice: APIClient, people: SimpleNamespace) -> None:
    job = factories.job(people.bob)

    assert alice.get(f"{URL}{job.pk}/").json()["dag"] is None


def test_a_job_is_shown_with_its_directives(alice: APIClient, people: SimpleNamespace) -> None:
    plain, job = factories.job(people.bob), factories.job(people.alice)
    directives = {"stdin_name": "in.txt", "checkpoint_exit_code": 85, "checkpoint_files": ["s"]}
    factories.describe(Job.objects.filter(pk=job.pk), directives=directives)

    assert alice.get(f"{URL}{job.pk}/").json()["directives"] == directives
    assert alice.get(f"{URL}{plain.pk}/").json()["directives"] is None


def _printed(people: SimpleNamespace, content: bytes) -> Job:
    factories.site()
    factories.job(people.alice)
    job = factories.run_job(factories.pilot(), stdout=content)
    assert job is not None
    return job


def test_the_end_of_the_output_is_sent(alice: APIClient, people: SimpleNamespace) -> None:
    job = _printed(people, b"x" * TAIL_BYTES + b"\nthe end \xff\n")

    answer = alice.get(f"{URL}{job.pk}/stdout")

    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["X-Full-Size-Bytes"] == str(TAIL_BYTES + 11)
    assert answer.content.decode().endswith("\nthe end \N{REPLACEMENT CHARACTER}\n")
    assert len(answer.content.decode()) == TAIL_BYTES


def test_all_of_the_output_is_sent_as_it_is(alice: APIClient, people: SimpleNamespace) -> None:
    content = b"x" * TAIL_BYTES + b"\nthe end \xff\n"
    job = _printed(people, content)

    answer = alice.get(f"{URL}{job.pk}/stdout?full=1")

    assert b"".join(answer.streaming_content) == content
    assert answer["Content-Disposition"] == f'attachment; filename="job-{job.pk}.stdout"'


def test_text_may_be_asked_for_as_text(alice: APIClient, people: SimpleNamespace) -> None:
    job = _printed(people, b"hello\n")

    assert alice.get(f"{URL}{job.pk}/stdout", HTTP_ACCEPT="text/plain").content == b"hello\n"


def test_an_earlier_attempt_can_be_read(alice: APIClient, people: SimpleNamespace) -> None:
    job = _printed(people, b"hello\n")

    assert alice.get(f"{URL}{job.pk}/stdout?attempt=1").status_code == 200
    assert alice.get(f"{URL}{job.pk}/stdout?attempt=2").status_code == 404


def test_standard_error_is_another_file(alice: APIClient, people: SimpleNamespace) -> None:
    job = _printed(people, b"hello\n")

    assert alice.get(f"{URL}{job.pk}/stderr").content == b""


@pytest.mark.parametrize("query", ["full=yes", "attempt=last", "attempt=-1"])
def test_a_bad_question_is_refused(alice: APIClient, people: SimpleNamespace, query: str) -> None:
    job = _printed(people, b"hello\n")

    assert alice.get(f"{URL}{job.pk}/stdout?{query}").status_code == 400


def test_a_job_that_has_printed_nothing_says_so(alice: APIClient, people: SimpleNamespace) -> None:
    job = factories.job(people.alice)

    answer = alice.get(f"{URL}{job.pk}/stdout")

    assert answer.status_code == 404
    assert {f"{job.pk}", "stdout."} <= set(answer.json()["detail"].split())


@pytest.mark.parametrize("path", ["", "stdout", "stderr"])
def test_a_job_that_is_not_there_is_not_found(alice: APIClient, path: str) -> None:
    assert alice.get(f"{URL}999/{path}").status_code == 404

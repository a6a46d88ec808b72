"""Submission of jobs by the API: what is stored, what is refused, what is only checked."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from portal.api.clusters.shapes import DescriptionSerializer
from portal.shared.job_submissions import MAX_JSON_BYTES, read_description
from tests import factories
from tests.portal.api.submissions import findings_in
from wms.accounting.models import Quota
from wms.core.models import AuditEntry, User
from wms.jobs.clusters import options
from wms.jobs.clusters.json_description import MEMBERS
from wms.jobs.content.blobs import open_blob
from wms.jobs.models import Blob, Cluster, Job, Workspace

URL = "/api/v1/jobs/"
ECHO = {"executable": "/bin/echo", "arguments": "job $(Process)"}
SWEEP = "executable = run.sh\narguments = $(mass) $(seed)\nqueue mass,seed from table.csv\n"
FILES = {"run.sh": b"#!/bin/sh\n", "table.csv": b"125,1\n126,2\n"}


def form(
    description: str = SWEEP, files: dict[str, bytes] | None = None, **more: Any
) -> dict[str, Any]:
    """A form with a description and files."""
    return {
        "description": SimpleUploadedFile("sweep.sub", description.encode()),
        "file": [
            SimpleUploadedFile(name, content)
            for name, content in (FILES if files is None else files).items()
        ],
        **more,
    }


def is_nothing_stored() -> bool:
    rows = (Cluster, Job, Workspace, Blob)
    return not any(model.objects.exists() for model in rows)


def test_one_job_in_json_is_a_cluster_of_one(alice: APIClient) -> None:
    answer = alice.post(URL, ECHO, format="json")

    assert answer.status_code == 201, answer.content
    cluster = answer.json()
    assert (cluster["name"], cluster["owner"], cluster["state"]) == ("echo", "alice", "active")
    assert (cluster["size"], cluster["made"]) == (1, 1)
    assert cluster["url"] == answer["Location"] == f"/api/v1/clusters/{cluster['id']}/"
    assert cluster["page"] == f"/clusters/{cluster['id']}/"
    [job] = Job.objects.all()
    assert (job.cluster_id, job.arguments) == (cluster["id"], ["job", "0"])


def test_submit_language_is_sent_as_a_text(alice: APIClient) -> None:
    text = "executable = /bin/true\nbatch_name = tries\nqueue 3\n"

    answer = alice.post(URL, text, content_type="text/plain")

    assert answer.status_code == 201, answer.content
    assert (answer.json()["name"], answer.json()["size"]) == ("tries", 3)


def test_a_sweep_comes_with_its_files(alice: APIClient) -> None:
    answer = alice.post(URL, form(options='{"labels": ["higgs"], "max_idle": 1}'))

    assert answer.status_code == 201, answer.content
    cluster = answer.json()
    assert (cluster["size"], cluster["labels"], cluster["max_idle"]) == (2, ["higgs"], 1)
    stored = Cluster.objects.get(pk=cluster["id"])
    paths = stored.workspace.files.values_list("path", flat=True)
    assert sorted(paths) == ["run.sh", "table.csv"]


@pytest.mark.parametrize("is_file", [True, False])
def test_json_comes_with_files_too(alice: APIClient, is_file: bool) -> None:
    text = json.dumps({"executable": "run.sh", "queue": 2})
    part: Any = SimpleUploadedFile("jobs.json", text.encode()) if is_file else text

    answer = alice.post(URL, form() | {"description": part})

    assert answer.status_code == 201, answer.content
    assert (answer.json()["size"], answer.json()["language"]) == (2, "json")


def test_the_submission_is_audited(alice: APIClient) -> None:
    cluster = alice.post(URL, ECHO, format="json").json()

    entry = AuditEntry.objects.get(action="submit cluster")
    assert (entry.actor, entry.object_kind, entry.object_key) == (
        "alice",
        "cluster",
        str(cluster["id"]),
    )


def test_the_same_key_and_body_give_the_same_cluster(alice: APIClient) -> None:
    headers = {"Idempotency-Key": "monday"}

    first = alice.post(URL, ECHO, format="json", headers=headers)
    second = alice.post(URL, ECHO, format="json", headers=headers)

    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json()["id"] == first.json()["id"]
    assert second["Location"] == first["Location"]
    assert Cluster.objects.count() == 1


def test_the_same_key_with_another_body_is_refused(alice: APIClient) -> None:
    headers = {"Idempotency-Key": "monday"}
    alice.post(URL, ECHO, format="json", headers=headers)

    answer = alice.post(URL, ECHO | {"queue": 2}, format="json", headers=headers)

    assert answer.status_code == 409
    assert Cluster.objects.count() == 1


def test_needs_that_no_queue_meets_are_told_at_once(alice: APIClient) -> None:
    factories.site()

    answer = alice.post(URL, ECHO | {"memory_mb": 10**7}, format="json")

    assert answer.status_code == 201
    assert answer.json()["warnings"]


def test_faults_name_the_line(alice: APIClient) -> None:
    answer = alice.post(URL, form("executable = run.sh\nrequest_cpus = many\nqueue\n"))

    [fault, *_] = findings_in(answer)
    assert (fault["file"], fault["line"]) == ("sweep.sub", 2)
    assert is_nothing_stored()


def test_faults_name_the_row_of_a_table(alice: APIClient) -> None:
    table = {"table.csv": b"125,1\n126\n", "run.sh": b""}

    [fault] = findings_in(alice.post(URL, form(files=table)))

    assert (fault["file"], fault["line"]) == ("table.csv", 2)
    assert is_nothing_stored()


def test_faults_name_the_member(alice: APIClient) -> None:
    answer = alice.post(URL, ECHO | {"cores": "many", "colour": "red"}, format="json")

    assert {fault["field"] for fault in findings_in(answer)} == {"cores", "colour"}
    assert is_nothing_stored()


@pytest.mark.parametrize("body", ["[1, 2]", '"a"', "7"])
def test_json_must_be_an_object(alice: APIClient, body: str) -> None:
    answer = alice.post(URL, body, content_type="application/json")

    assert answer.status_code == 400
    assert is_nothing_stored()


def test_a_broken_description_in_json_is_quoted_by_line(alice: APIClient) -> None:
    broken = SimpleUploadedFile("jobs.json", b'{"executable":\n nothing}')

    [fault] = findings_in(alice.post(URL, {"description": broken}))

    assert (fault["file"], fault["line"]) == ("jobs.json", 2)


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ({}, "description"),
        ({"description": "queue", "dag": "x"}, "dag"),
        ({"description": "queue", "file": "x"}, "file"),
        ({"description": ["queue", "queue"]}, "description"),
        ({"description": "executable = /bin/true\nqueue", "options": "[]"}, "options"),
        ({"description": "executable = /bin/true\nqueue", "options": '{"colour": 1}'}, "colour"),
    ],
)
def test_parts_that_nobody_reads_are_refused(
    alice: APIClient, parts: dict[str, Any], field: str
) -> None:
    answer = alice.post(URL, parts, format="multipart")

    assert {fault["field"] for fault in findings_in(answer)} == {field}
    assert is_nothing_stored()


def test_two_files_of_one_name_are_refused(alice: APIClient) -> None:
    twice = [SimpleUploadedFile("run.sh", content) for content in (b"1", b"2")]

    [fault] = findings_in(alice.post(URL, form() | {"file": twice}))

    assert (fault["file"], fault["field"]) == ("run.sh", "file")


def test_a_quota_refuses_with_its_numbers(people: SimpleNamespace, alice: APIClient) -> None:
    Quota.objects.create(user=people.alice, max_waiting_jobs=5)

    answer = alice.post(URL, ECHO | {"queue": 6}, format="json")

    assert answer.status_code == 409
    problem = answer.json()
    assert problem["type"] == "/problems/quota/"
    assert (problem["quota"], problem["limit"], problem["asked"]) == ("waiting_jobs", 5, 6)
    assert not Cluster.objects.exists()


def test_a_viewer_submits_nothing(
    people: SimpleNamespace, as_user: Callable[[User], APIClient]
) -> None:
    vera = as_user(people.vera)

    assert vera.post(URL, ECHO, format="json").status_code == 403
    assert vera.post(f"{URL}check/", ECHO, format="json").status_code == 403
    assert is_nothing_stored()


def test_a_check_stores_nothing_and_tells_the_size(alice: APIClient) -> None:
    answer = alice.post(f"{URL}check/", form())

    assert answer.status_code == 200, answer.content
    checked = answer.json()
    assert (checked["is_faultless"], checked["size"], checked["findings"]) == (True, 2, [])
    assert is_nothing_stored()


def test_a_check_tells_the_faults(alice: APIClient) -> None:
    checked = alice.post(f"{URL}check/", ECHO | {"cores": "many"}, format="json").json()

    assert (checked["is_faultless"], checked["size"]) == (False, 0)
    assert [fault["field"] for fault in checked["findings"]] == ["cores"]


def test_the_description_is_kept_as_it_was_sent(alice: APIClient) -> None:
    cluster = alice.post(URL, form()).json()

    answer = alice.get(f"{cluster['url']}description")

    assert b"".join(answer.streaming_content).decode() == SWEEP
    with open_blob(Cluster.objects.get().description_id) as file:
        assert file.read().decode() == SWEEP


def test_the_schema_has_every_member_of_a_description() -> None:
    assert set(DescriptionSerializer().fields) == MEMBERS | options.NAMES


def test_of_a_description_no_more_is_read_than_it_may_have() -> None:
    sent = io.BytesIO(bytes(MAX_JSON_BYTES + 1000))

    assert len(read_description(sent)) == MAX_JSON_BYTES + 1
    assert sent.tell() == 0


def test_a_limit_may_be_written_with_blanks(alice: APIClient) -> None:
    answer = alice.post(URL, ECHO | {"max_idle": " " * 30 + "5"}, format="json")

    assert (answer.status_code, answer.json()["max_idle"]) == (201, 5)

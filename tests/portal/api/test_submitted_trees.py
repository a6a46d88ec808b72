"""Submission of DAGs in directories and archives by the API: where names are looked up."""

from __future__ import annotations

import io
import tarfile
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from tests.portal.api.submissions import (
    FILES,
    URL,
    dag_form,
    findings_in,
    is_nothing_stored,
    named_part,
)
from wms.dags.models import Dag

TREE = {
    "run/case.dag": (
        b"JOB A ../common/job.sub DIR ../common\nJOB B /home/alice/proj/common/job.sub\n"
        b"SPLICE S s.dag\nSUBDAG EXTERNAL I ../in.dag\n"
    ),
    "run/s.dag": b"JOB C ../common/job.sub DIR ../common",
    "in.dag": b"JOB D /home/alice/proj/common/job.sub DIR ../common",
    "common/common/job.sub": b"executable = run.sh\nqueue\n",
    "common/job.sub": b"executable = run.sh\nqueue\n",
    "common/run.sh": b"#!/bin/sh\n",
    "run/run.sh": b"#!/bin/sh\n",
}


def test_names_are_looked_up_from_the_directory_and_below_the_root(alice: APIClient) -> None:
    said = {"directory": "run/", "root": "/home/alice/proj/"}

    answer = alice.post(URL, {"dag": "run/case.dag", "archive": _archive(TREE), **said})

    assert answer.status_code == 201, answer.json()
    told = answer.json()
    assert (told["directory"], told["root_path"], told["uses_dag_dir"]) == (
        "run",
        "/home/alice/proj",
        False,
    )
    assert dict(Dag.objects.get().nodes.values_list("name", "directory")) == {
        "A": "common",
        "B": "run",
        "S+C": "common",
        "I": "run",
    }


def test_without_a_directory_the_faults_say_what_to_send(alice: APIClient) -> None:
    findings = findings_in(alice.post(URL, {"dag": "run/case.dag", "archive": _archive(TREE)}))

    told = {finding["line"]: finding["message"] for finding in findings}
    assert "give as directory" in told[1]
    assert told[2].endswith("as in root=/home/alice/proj/common")
    assert is_nothing_stored()


def test_names_may_be_looked_up_from_the_folder_of_the_dag_file(alice: APIClient) -> None:
    files = {"d/x.dag": b"JOB A a.sub", "d/a.sub": b"executable = /bin/true\nqueue\n"}

    answer = alice.post(URL, {"dag": "d/x.dag", "archive": _archive(files), "use_dag_dir": "true"})

    assert answer.status_code == 201, answer.json()
    assert Dag.objects.get().nodes.get().directory == "d"


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"directory": "../x"}, "directory"),
        ({"root": "home"}, "root"),
        ({"use_dag_dir": "perhaps"}, "use_dag_dir"),
        ({"directory": ["a", "b"]}, "directory"),
    ],
)
def test_an_origin_that_cannot_be_is_refused(alice: APIClient, said: Any, field: str) -> None:
    assert [each["field"] for each in findings_in(alice.post(URL, dag_form(**said)))] == [field]
    assert is_nothing_stored()


@pytest.mark.parametrize(
    "name", ["../data.csv", "/etc/passwd", "c:\\\\data.csv", "..", "a\tb", "a//b", "./a", "x" * 300]
)
def test_a_file_name_that_is_not_plain_or_leads_out_is_refused(alice: APIClient, name: str) -> None:
    body, content_type = named_part(name)

    [finding] = findings_in(alice.generic("POST", URL, body, content_type))

    assert finding["field"] == "file"
    assert is_nothing_stored()


def test_files_keep_the_directories_of_their_names(alice: APIClient) -> None:
    body, content_type = named_part("inputs/data.csv")

    findings = findings_in(alice.generic("POST", URL, body, content_type))

    [finding] = findings
    assert {"job.sub", "A1"} <= set(finding["message"].split())


def test_a_browser_session_is_read_the_same(people: SimpleNamespace) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.alice)
    client.cookies["csrftoken"] = "a" * 32
    body, content_type = named_part("../data.csv")

    answer = client.generic("POST", URL, body, content_type, headers={"X-CSRFToken": "a" * 32})

    assert "leads outside" in findings_in(answer)[0]["message"]


def _archive(files: dict[str, bytes]) -> SimpleUploadedFile:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return SimpleUploadedFile("all.tgz", stream.getvalue())


def test_a_dag_file_in_an_archive_runs_with_the_files_beside_it(alice: APIClient) -> None:
    files = {"sub/deep.dag": b"JOB A sub/job.sub\n", "sub/job.sub": FILES["job.sub"]}
    files["run.sh"] = b""

    answer = alice.post(URL, {"dag": "sub/deep.dag", "archive": _archive(files)})

    assert answer.status_code == 201, answer.content
    assert answer.json()["dag_files"] == ["sub/deep.dag"]
    names = Dag.objects.get().workspace.files.values_list("path", flat=True)
    assert set(names) == {"sub/deep.dag", "sub/job.sub", "run.sh"}


def test_several_dag_files_run_as_one(alice: APIClient) -> None:
    body = dag_form("JOB A job.sub\n") | {"more": None}
    del body["more"]
    body["dag"] = [body["dag"], SimpleUploadedFile("other.dag", b"JOB A job.sub\n")]

    answer = alice.post(URL, body)

    assert answer.status_code == 201, answer.content
    assert answer.json()["dag_files"] == ["analysis.dag", "other.dag"]
    assert list(Dag.objects.get().nodes.values_list("name", flat=True)) == ["0.A", "1.A"]


def test_a_run_gets_options_and_begins_from_a_rescue_among_its_files(alice: APIClient) -> None:
    files = {**FILES, "analysis.dag.rescue001": b"DONE A1\n"}

    answer = alice.post(URL, dag_form(files=files, options='{"max_jobs": 7}'))

    told = answer.json()
    assert answer.status_code == 201, answer.content
    assert (told["options"], told["rescue_number"]) == ({"max_jobs": 7}, 1)
    assert told["nodes"]["done"] == 1


def test_a_run_may_begin_afresh_although_a_rescue_is_there(alice: APIClient) -> None:
    files = {**FILES, "analysis.dag.rescue001": b"DONE A1\n"}

    told = alice.post(URL, dag_form(files=files, resume="afresh")).json()

    assert (told["rescue_number"], told["nodes"]["done"]) == (0, 0)

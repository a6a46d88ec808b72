"""Submitting a DAG: all of it, or nothing and a finding for each fault."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.response import Response
from rest_framework.test import APIClient

from tests import factories
from wms.core.models import AuditEntry, User
from wms.dags.models import Dag
from wms.jobs.content.blobs import open_blob
from wms.jobs.models import Blob, Workspace, WorkspaceFile

URL = "/api/v1/dags/"
FILES = {"job.sub": factories.SUBMIT_FILE.encode(), "run.sh": b"#!/bin/sh\n"}


def _body(
    dag: str | None = None, files: dict[str, bytes] | None = None, **more: Any
) -> dict[str, Any]:
    text = factories.dag_text(2) if dag is None else dag
    return {
        "dag": SimpleUploadedFile("analysis.dag", text.encode()),
        "file": [
            SimpleUploadedFile(name, content)
            for name, content in (FILES if files is None else files).items()
        ],
        **more,
    }


def _named(raw_name: str, part: str = "file") -> tuple[bytes, str]:
    """A multipart body with one file under a name as the sender wrote it."""
    lines = [
        "--frontier",
        'Content-Disposition: form-data; name="dag"; filename="analysis.dag"',
        "",
        factories.dag_text(1),
        "--frontier",
        f'Content-Disposition: form-data; name="{part}"; filename="{raw_name}"',
        "",
        "content",
        "--frontier--",
        "",
    ]
    return "\r\n".join(lines).encode(), "multipart/form-data; boundary=frontier"


def _nothing_is_stored() -> bool:
    return not (Dag.objects.exists() or Workspace.objects.exists() or Blob.objects.exists())


def _findings(answer: Response) -> list[dict[str, Any]]:
    assert answer.status_code == 400, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    return answer.json()["findings"]


def test_a_dag_with_its_files_is_stored(alice: APIClient) -> None:
    description = SimpleUploadedFile("group.sub", b'requirements = TARGET.Name == "UW"\nqueue\n')

    answer = alice.post(URL, _body(description=description))

    assert answer.status_code == 201, answer.content
    dag = answer.json()
    assert (dag["name"], dag["owner"], dag["state"]) == ("analysis", "alice", "idle")
    assert dag["nodes"]["total"] == 2
    assert dag["ad_attributes"]["Requirements"] == 'TARGET.Name == "UW"'
    paths = [file["path"] for file in alice.get(f"{URL}{dag['id']}/files/").json()["results"]]
    assert sorted(paths) == ["analysis.dag", "group.sub", "job.sub", "run.sh"]


def test_the_submission_is_audited(alice: APIClient) -> None:
    alice.post(URL, _body())

    assert AuditEntry.objects.filter(actor="alice", action="submit DAG").count() == 1


def test_the_same_key_gives_the_same_dag(alice: APIClient) -> None:
    first = alice.post(URL, _body(), headers={"Idempotency-Key": "monday"})

    second = alice.post(URL, _body(), headers={"Idempotency-Key": "monday"})

    assert second.status_code == 201
    assert second.json()["id"] == first.json()["id"]
    assert Dag.objects.count() == 1


def test_what_may_not_be_meant_is_told_and_the_dag_is_stored(alice: APIClient) -> None:
    factories.site()
    job = factories.SUBMIT_FILE.replace("queue\n", '+Tags = "gpu"\nqueue\n')
    files = FILES | {"job.sub": job.encode()}

    answers = [
        alice.post(URL, _body(files=files), headers={"Idempotency-Key": "monday"}) for _ in range(2)
    ]

    assert [answer.status_code for answer in answers] == [201, 201]
    warning = {
        "file": "job.sub",
        "line": 6,
        "command": "",
        "field": "",
        "message": "+Tags: no queue offers the tag gpu today",
        "column": None,
    }
    assert [answer.json()["warnings"] for answer in answers] == [[warning], [warning]]
    assert Dag.objects.count() == 1


def test_a_dag_without_anything_odd_is_stored_without_warnings(alice: APIClient) -> None:
    assert alice.post(URL, _body()).json()["warnings"] == []


def test_contradicting_needs_are_refused_with_their_names(alice: APIClient) -> None:
    job = factories.SUBMIT_FILE.replace("queue\n", "request_cpus = 4\n+MaxCpus = 2\nqueue\n")

    [finding] = _findings(alice.post(URL, _body(files=FILES | {"job.sub": job.encode()})))

    assert (finding["file"], finding["line"]) == ("job.sub", 6)
    assert "request_cpus and +MaxCpus" in finding["message"]
    assert _nothing_is_stored()


def test_a_key_of_another_user_is_another_key(
    people: SimpleNamespace, as_user: Callable[[User], APIClient]
) -> None:
    for user in (people.alice, people.bob):
        as_user(user).post(URL, _body(), headers={"Idempotency-Key": "monday"})

    assert Dag.objects.count() == 2


@pytest.mark.parametrize(
    ("dag", "line", "words"),
    [
        ("JOB A job.sub\nJOBB B job.sub\n", 2, "JOBB"),
        ("JOB A job.sub\nPARENT A CHILD B\n", 2, "B"),
        ("JOB A job.sub\nJOB B job.sub\nPARENT A CHILD B\nPARENT B CHILD A\n", None, "cycle"),
        ("JOB A job.sub\nJOB B missing.sub\n", 2, "missing.sub"),
    ],
    ids=["syntax", "unknown child", "cycle", "missing submit file"],
)
def test_a_faulty_dag_is_refused_with_file_and_line(
    alice: APIClient, dag: str, line: int | None, words: str
) -> None:
    findings = _findings(alice.post(URL, _body(dag)))

    finding = next(finding for finding in findings if words in finding["message"])
    assert finding["file"] == "analysis.dag"
    assert finding["line"] == line or (line is None and finding["line"] in {3, 4})
    assert _nothing_is_stored()


def test_all_faults_are_told_at_once(alice: APIClient) -> None:
    findings = _findings(alice.post(URL, _body("JOB A job.sub\nNONSENSE\nPARENT A CHILD X\n")))

    assert {finding["line"] for finding in findings} == {2, 3}


def test_a_fault_in_a_submit_file_is_told_with_its_line(alice: APIClient) -> None:
    files = {**FILES, "job.sub": b"executable = run.sh\nnot a command\nqueue\n"}

    [finding] = _findings(alice.post(URL, _body(files=files)))

    assert (finding["file"], finding["line"]) == ("job.sub", 2)
    assert _nothing_is_stored()


def test_without_the_dag_file_the_part_is_named(alice: APIClient) -> None:
    body = _body()
    del body["dag"]

    [finding] = _findings(alice.post(URL, body))

    assert finding["field"] == "dag"


def test_a_dag_sent_as_plain_text_is_refused(alice: APIClient) -> None:
    findings = _findings(alice.post(URL, _body() | {"dag": "JOB A job.sub"}))

    assert {finding["field"] for finding in findings} == {"dag"}


def test_an_unknown_part_is_refused(alice: APIClient) -> None:
    [finding] = _findings(alice.post(URL, _body(flie=SimpleUploadedFile("x.txt", b"x"))))

    assert finding["field"] == "flie"
    assert _nothing_is_stored()


def test_two_files_of_one_name_are_refused(alice: APIClient) -> None:
    body = _body()
    body["file"].append(SimpleUploadedFile("run.sh", b"other"))

    [finding] = _findings(alice.post(URL, body))

    assert (finding["file"], finding["field"]) == ("run.sh", "file")
    assert _nothing_is_stored()


def test_a_dag_that_is_no_text_is_refused(alice: APIClient) -> None:
    body = _body() | {"dag": SimpleUploadedFile("analysis.dag", b"JOB \xff\xfe")}

    [finding] = _findings(alice.post(URL, body))

    assert (finding["file"], finding["line"]) == ("analysis.dag", 1)
    assert "UTF-8" in finding["message"]


def test_a_dag_file_is_kept_as_it_was_sent(alice: APIClient) -> None:
    content = "\ufeff".encode() + b"# d\xe9j\xe0 vu\r\nJOB A job.sub\r\n"
    body = _body() | {"dag": SimpleUploadedFile("analysis.dag", content)}

    answer = alice.post(URL, body)

    assert answer.status_code == 201, answer.json()
    file = WorkspaceFile.objects.get(path="analysis.dag")
    with open_blob(file.blob.sha256) as stream:
        assert stream.read() == content


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
    findings = _findings(alice.post(URL, {"dag": "run/case.dag", "archive": _archive(TREE)}))

    told = {finding["line"]: finding["message"] for finding in findings}
    assert "give as directory" in told[1]
    assert told[2].endswith("as in root=/home/alice/proj/common")
    assert _nothing_is_stored()


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
    assert [each["field"] for each in _findings(alice.post(URL, _body(**said)))] == [field]
    assert _nothing_is_stored()


@pytest.mark.parametrize(
    "name", ["../data.csv", "/etc/passwd", "c:\\\\data.csv", "..", "a\tb", "a//b", "./a", "x" * 300]
)
def test_a_file_name_that_is_not_plain_or_leads_out_is_refused(alice: APIClient, name: str) -> None:
    body, content_type = _named(name)

    [finding] = _findings(alice.generic("POST", URL, body, content_type))

    assert finding["field"] == "file"
    assert _nothing_is_stored()


def test_files_keep_the_directories_of_their_names(alice: APIClient) -> None:
    body, content_type = _named("inputs/data.csv")

    findings = _findings(alice.generic("POST", URL, body, content_type))

    [finding] = findings
    assert {"job.sub", "A1"} <= set(finding["message"].split())


def test_a_browser_session_is_read_the_same(people: SimpleNamespace) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.alice)
    client.cookies["csrftoken"] = "a" * 32
    body, content_type = _named("../data.csv")

    answer = client.generic("POST", URL, body, content_type, headers={"X-CSRFToken": "a" * 32})

    assert "leads outside" in _findings(answer)[0]["message"]


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
    body = _body("JOB A job.sub\n") | {"more": None}
    del body["more"]
    body["dag"] = [body["dag"], SimpleUploadedFile("other.dag", b"JOB A job.sub\n")]

    answer = alice.post(URL, body)

    assert answer.status_code == 201, answer.content
    assert answer.json()["dag_files"] == ["analysis.dag", "other.dag"]
    assert list(Dag.objects.get().nodes.values_list("name", flat=True)) == ["0.A", "1.A"]


def test_a_run_gets_options_and_begins_from_a_rescue_among_its_files(alice: APIClient) -> None:
    files = {**FILES, "analysis.dag.rescue001": b"DONE A1\n"}

    answer = alice.post(URL, _body(files=files, options='{"max_jobs": 7}'))

    told = answer.json()
    assert answer.status_code == 201, answer.content
    assert (told["options"], told["rescue_number"]) == ({"max_jobs": 7}, 1)
    assert told["nodes"]["done"] == 1


def test_a_run_may_begin_afresh_although_a_rescue_is_there(alice: APIClient) -> None:
    files = {**FILES, "analysis.dag.rescue001": b"DONE A1\n"}

    told = alice.post(URL, _body(files=files, resume="afresh")).json()

    assert (told["rescue_number"], told["nodes"]["done"]) == (0, 0)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"options": "[]"}, "options"),
        ({"options": "{"}, "options"),
        ({"options": '{"max_job": 1}'}, "max_job"),
        ({"options": '{"max_jobs": "many"}'}, "max_jobs"),
        ({"resume": "sometimes"}, "resume"),
        ({"resume": "7"}, "resume"),
        ({"resume": "1", "save_point": "x.save"}, "save_point"),
        ({"save_point": "x.save"}, "save_point"),
        ({"dag": "elsewhere.dag"}, "dag"),
        ({"archive": "text"}, "archive"),
        ({"archive": SimpleUploadedFile("x.zip", b"none")}, "archive"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_part(
    alice: APIClient, more: dict[str, Any], field: str
) -> None:
    findings = _findings(alice.post(URL, _body() | more))

    assert {finding["field"] for finding in findings} == {field}
    assert not Dag.objects.exists()


def test_a_refusal_tells_warnings_and_the_shape_as_well(alice: APIClient) -> None:
    dag = 'JOB A job.sub\nJOB B job.sub\nPARENT A CHILD B\nPARENT B CHILD A\nVARS A x="1" x="2"\n'

    told = alice.post(URL, _body(dag)).json()

    assert told["findings"][0]["command"] == "PARENT"
    assert told["statistics"]["cycle"][0] == told["statistics"]["cycle"][-1]
    assert (told["statistics"]["nodes"], told["statistics"]["arcs"]) == (2, 2)
    assert told["warnings"]


def test_a_check_tells_all_and_stores_nothing(alice: APIClient) -> None:
    good = alice.post(f"{URL}check/", _body())
    bad = alice.post(f"{URL}check/", _body("JOB A job.sub\nNONSENSE\nPARENT A CHILD X\n"))

    assert (good.status_code, bad.status_code) == (200, 200)
    assert good.json()["is_faultless"] is True
    assert good.json()["statistics"] == {
        "nodes": 2, "arcs": 0, "height": 1, "width": 2, "widths": [2], "cycle": [],
    }  # fmt: skip
    assert {finding["line"] for finding in bad.json()["findings"]} == {2, 3}
    assert _nothing_is_stored()


def test_a_request_that_is_too_large_is_refused_unread(alice: APIClient, settings: Any) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_UPLOAD_BYTES": 500}

    answer = alice.post(URL, _body(files={**FILES, "data": b"x" * 600}))

    assert answer.status_code == 413
    assert answer["Content-Type"] == "application/problem+json"
    assert _nothing_is_stored()


def test_too_many_files_are_refused(alice: APIClient, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_NUMBER_FILES = 3

    answer = alice.post(URL, _body(files={**FILES, "a": b"", "b": b""}))

    assert answer.status_code == 413


def test_a_broken_multipart_body_is_refused(alice: APIClient) -> None:
    answer = alice.generic("POST", URL, b"nothing", "multipart/form-data")

    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"


def test_json_is_not_a_submission(alice: APIClient) -> None:
    answer = alice.post(URL, {"dag": "JOB A a.sub"}, format="json")

    assert answer.status_code == 415
    assert answer["Content-Type"] == "application/problem+json"


def test_a_viewer_may_not_submit(
    people: SimpleNamespace, as_user: Callable[[User], APIClient]
) -> None:
    answer = as_user(people.vera).post(URL, _body())

    assert answer.status_code == 403
    assert "role user" in answer.json()["detail"]
    assert _nothing_is_stored()

"""Submission of DAGs by the API: what is stored, what is refused."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from rest_framework.test import APIClient

from tests import factories
from tests.portal.api.submissions import (
    FILES,
    URL,
    dag_form,
    findings_in,
    is_nothing_stored,
)
from wms.core.models import AuditEntry, User
from wms.dags.models import Dag
from wms.jobs.content.blobs import open_blob
from wms.jobs.models import WorkspaceFile
from wms.sites.ads import publish_ads
from wms.sites.models import Site


def test_a_dag_with_its_files_is_stored(alice: APIClient) -> None:
    description = SimpleUploadedFile("group.sub", b'requirements = TARGET.Name == "UW"\nqueue\n')

    answer = alice.post(URL, dag_form(description=description))

    assert answer.status_code == 201, answer.content
    dag = answer.json()
    assert (dag["name"], dag["owner"], dag["state"]) == ("analysis", "alice", "idle")
    assert dag["nodes"]["total"] == 2
    assert dag["ad_attributes"]["Requirements"] == 'TARGET.Name == "UW"'
    paths = [file["path"] for file in alice.get(f"{URL}{dag['id']}/files/").json()["results"]]
    assert sorted(paths) == ["analysis.dag", "group.sub", "job.sub", "run.sh"]


def test_the_submission_is_audited(alice: APIClient) -> None:
    alice.post(URL, dag_form())

    assert AuditEntry.objects.filter(actor="alice", action="submit DAG").count() == 1


def test_the_same_key_gives_the_same_dag(alice: APIClient) -> None:
    first = alice.post(URL, dag_form(), headers={"Idempotency-Key": "monday"})

    second = alice.post(URL, dag_form(), headers={"Idempotency-Key": "monday"})

    assert (first.status_code, second.status_code) == (201, 200)
    assert "Idempotency-Replayed" not in first
    assert second["Idempotency-Replayed"] == "true"
    assert second["Location"] == first["Location"] == f"{URL}{first.json()['id']}/"
    assert second.json()["id"] == first.json()["id"]
    assert Dag.objects.count() == 1


@pytest.mark.parametrize(
    "other",
    [{"dag": "JOB B job.sub\n"}, {"files": FILES | {"more": b"1"}}, {"options": '{"max_jobs": 1}'}],
    ids=["DAG file", "files", "options"],
)
def test_the_same_key_with_another_dag_is_refused(alice: APIClient, other: dict[str, Any]) -> None:
    alice.post(URL, dag_form(), headers={"Idempotency-Key": "monday"})

    answer = alice.post(URL, dag_form(**other), headers={"Idempotency-Key": "monday"})

    assert answer.status_code == 409
    assert Dag.objects.count() == 1


@pytest.mark.parametrize("key", ["", "x" * 129])
def test_a_key_that_cannot_be_kept_is_refused(alice: APIClient, key: str) -> None:
    answer = alice.post(URL, dag_form(), headers={"Idempotency-Key": key})

    assert answer.status_code == 400
    assert [each["field"] for each in answer.json()["findings"]] == ["idempotency_key"]
    assert not Dag.objects.exists()


def test_an_address_without_its_slash_takes_a_dag_too(alice: APIClient) -> None:
    answer = alice.post(URL.rstrip("/"), dag_form(), follow=True)

    assert [status for _, status in answer.redirect_chain] == [308]
    assert answer.status_code == 201
    assert Dag.objects.count() == 1


def test_what_may_not_be_meant_is_told_and_the_dag_is_stored(alice: APIClient) -> None:
    factories.site()
    job = factories.SUBMIT_FILE.replace("queue\n", '+Tags = "gpu"\nqueue\n')
    files = FILES | {"job.sub": job.encode()}

    answers = [
        alice.post(URL, dag_form(files=files), headers={"Idempotency-Key": "monday"})
        for _ in range(2)
    ]

    assert [answer.status_code for answer in answers] == [201, 200]
    warning = {
        "file": "job.sub",
        "line": 6,
        "command": "",
        "field": "",
        "message": "+Tags: no queue offers the tag gpu today",
        "column": None,
        "member": "",
    }
    assert [answer.json()["warnings"] for answer in answers] == [[warning], [warning]]
    assert Dag.objects.count() == 1


def test_a_dag_without_anything_odd_is_stored_without_warnings(alice: APIClient) -> None:
    assert alice.post(URL, dag_form()).json()["warnings"] == []


def test_contradicting_needs_are_refused_with_their_names(alice: APIClient) -> None:
    job = factories.SUBMIT_FILE.replace("queue\n", "request_cpus = 4\n+MaxCpus = 2\nqueue\n")

    [finding] = findings_in(alice.post(URL, dag_form(files=FILES | {"job.sub": job.encode()})))

    assert (finding["file"], finding["line"]) == ("job.sub", 6)
    assert "request_cpus and +MaxCpus" in finding["message"]
    assert is_nothing_stored()


def test_a_key_of_another_user_is_another_key(
    people: SimpleNamespace, as_user: Callable[[User], APIClient]
) -> None:
    for user in (people.alice, people.bob):
        as_user(user).post(URL, dag_form(), headers={"Idempotency-Key": "monday"})

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
    findings = findings_in(alice.post(URL, dag_form(dag)))

    finding = next(finding for finding in findings if words in finding["message"])
    assert finding["file"] == "analysis.dag"
    assert finding["line"] == line or (line is None and finding["line"] in {3, 4})
    assert is_nothing_stored()


def test_all_faults_are_told_at_once(alice: APIClient) -> None:
    findings = findings_in(alice.post(URL, dag_form("JOB A job.sub\nNONSENSE\nPARENT A CHILD X\n")))

    assert {finding["line"] for finding in findings} == {2, 3}


def test_a_fault_in_a_submit_file_is_told_with_its_line(alice: APIClient) -> None:
    files = {**FILES, "job.sub": b"executable = run.sh\nnot a command\nqueue\n"}

    [finding] = findings_in(alice.post(URL, dag_form(files=files)))

    assert (finding["file"], finding["line"]) == ("job.sub", 2)
    assert is_nothing_stored()


def test_without_the_dag_file_the_part_is_named(alice: APIClient) -> None:
    body = dag_form()
    del body["dag"]

    [finding] = findings_in(alice.post(URL, body))

    assert finding["field"] == "dag"


def test_a_dag_sent_as_plain_text_is_refused(alice: APIClient) -> None:
    findings = findings_in(alice.post(URL, dag_form() | {"dag": "JOB A job.sub"}))

    assert {finding["field"] for finding in findings} == {"dag"}


def test_an_unknown_part_is_refused(alice: APIClient) -> None:
    [finding] = findings_in(alice.post(URL, dag_form(flie=SimpleUploadedFile("x.txt", b"x"))))

    assert finding["field"] == "flie"
    assert is_nothing_stored()


def test_two_files_of_one_name_are_refused(alice: APIClient) -> None:
    body = dag_form()
    body["file"].append(SimpleUploadedFile("run.sh", b"other"))

    [finding] = findings_in(alice.post(URL, body))

    assert (finding["file"], finding["field"]) == ("run.sh", "file")
    assert is_nothing_stored()


def test_a_dag_that_is_no_text_is_refused(alice: APIClient) -> None:
    body = dag_form() | {"dag": SimpleUploadedFile("analysis.dag", b"JOB \xff\xfe")}

    [finding] = findings_in(alice.post(URL, body))

    assert (finding["file"], finding["line"]) == ("analysis.dag", 1)
    assert "UTF-8" in finding["message"]


def test_a_dag_file_is_kept_as_it_was_sent(alice: APIClient) -> None:
    content = "\ufeff".encode() + b"# d\xe9j\xe0 vu\r\nJOB A job.sub\r\n"
    body = dag_form() | {"dag": SimpleUploadedFile("analysis.dag", content)}

    answer = alice.post(URL, body)

    assert answer.status_code == 201, answer.json()
    file = WorkspaceFile.objects.get(path="analysis.dag")
    with open_blob(file.blob.sha256) as stream:
        assert stream.read() == content


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
    findings = findings_in(alice.post(URL, dag_form() | more))

    assert {finding["field"] for finding in findings} == {field}
    assert not Dag.objects.exists()


def _tarred(*members: tuple[str, bytes, int]) -> bytes:
    """A tar archive of members: name, type and size of each."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, kind, size_bytes in members:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.linkname = kind, size_bytes, "../../secret"
            archive.addfile(member, io.BytesIO(bytes(size_bytes)))
    return stream.getvalue()


def test_members_of_an_archive_that_are_refused_are_named_and_nothing_is_stored(
    alice: APIClient,
) -> None:
    plain, link, device = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE
    members = [
        ("/etc/x", plain, 1), ("../x", plain, 1), ("a", plain, 1), ("./a", plain, 1),
        ("door", link, 0), ("tty", device, 0), ("x\ny", plain, 1), ("bad-\udcff", plain, 1),
    ]  # fmt: skip
    sent = SimpleUploadedFile("all.tgz", _tarred(*members))

    findings = findings_in(alice.post(URL, dag_form() | {"archive": sent}))

    assert {finding["file"] for finding in findings} == {"all.tgz"}
    assert [finding["member"] for finding in findings] == [
        "/etc/x", "../x", "./a", "door", "tty", "x\ny", r"bad-\xff",
    ]  # fmt: skip
    assert is_nothing_stored()


def test_the_member_at_which_an_archive_becomes_too_large_is_named(
    alice: APIClient, settings: Any
) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_UPLOAD_BYTES": 100_000}
    bomb = _tarred(("small", tarfile.REGTYPE, 10), ("zeros", tarfile.REGTYPE, 200_000))

    answer = alice.post(URL, dag_form() | {"archive": SimpleUploadedFile("all.tgz", bomb)})

    told = answer.json()
    assert (answer.status_code, told["type"]) == (413, "/problems/too-large/")
    assert (told["archive"], told["member"]) == ("all.tgz", "zeros")
    assert is_nothing_stored()


def test_a_refusal_tells_warnings_and_the_shape_as_well(alice: APIClient) -> None:
    dag = 'JOB A job.sub\nJOB B job.sub\nPARENT A CHILD B\nPARENT B CHILD A\nVARS A x="1" x="2"\n'

    told = alice.post(URL, dag_form(dag)).json()

    assert told["findings"][0]["command"] == "PARENT"
    assert told["statistics"]["cycle"][0] == told["statistics"]["cycle"][-1]
    assert (told["statistics"]["nodes"], told["statistics"]["arcs"]) == (2, 2)
    assert told["warnings"]


def test_a_check_tells_all_and_stores_nothing(alice: APIClient) -> None:
    good = alice.post(f"{URL}check/", dag_form())
    bad = alice.post(f"{URL}check/", dag_form("JOB A job.sub\nNONSENSE\nPARENT A CHILD X\n"))

    assert (good.status_code, bad.status_code) == (200, 200)
    assert good.json()["is_faultless"] is True
    assert good.json()["statistics"] == {
        "nodes": 2, "arcs": 0, "height": 1, "width": 2, "widths": [2], "cycle": [],
    }  # fmt: skip
    assert {finding["line"] for finding in bad.json()["findings"]} == {2, 3}
    assert is_nothing_stored()


def test_a_request_that_is_too_large_is_refused_unread(alice: APIClient, settings: Any) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_UPLOAD_BYTES": 500}

    answer = alice.post(URL, dag_form(files={**FILES, "data": b"x" * 600}))

    assert answer.status_code == 413
    assert answer["Content-Type"] == "application/problem+json"
    assert is_nothing_stored()


def test_too_many_files_are_refused(alice: APIClient, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_NUMBER_FILES = 3

    answer = alice.post(URL, dag_form(files={**FILES, "a": b"", "b": b""}))

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
    answer = as_user(people.vera).post(URL, dag_form())

    assert answer.status_code == 403
    assert "role user" in answer.json()["detail"]
    assert is_nothing_stored()


def test_a_check_and_a_submission_name_what_sites_require_and_the_dag_does_not_set(
    alice: APIClient,
) -> None:
    site = factories.site()
    Site.objects.filter(pk=site.pk).update(requirements="TARGET.WANT_X =?= true")
    publish_ads({}, now=timezone.now())

    checked = alice.post(f"{URL}check/", dag_form()).json()
    submitted = alice.post(URL, dag_form())

    assert checked["is_faultless"]
    assert submitted.status_code == 201
    for answer in (checked, submitted.json()):
        [warning] = answer["warnings"]
        assert "The only site requires WANT_X = true" in warning["message"]

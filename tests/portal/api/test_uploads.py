from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.response import Response
from rest_framework.test import APIClient

from portal.middleware.uploads import Upload
from portal.shared.dag_submissions import SubmissionParts, submission_of
from tests.portal.api.submissions import dag_form, findings_in
from wms.core.conf import conf
from wms.core.known_contents import KnownContent
from wms.core.models import User
from wms.core.storage.contents import FileContent
from wms.dags.models import Dag
from wms.jobs.models import Cluster, ResumableUpload, WorkspaceFile
from wms.schedules.models import Schedule, ScheduleFile

URL = "/api/v1/uploads/"
CONTENT = b"0123456789" * 10
SHA256 = hashlib.sha256(CONTENT).hexdigest()
JOBS = "executable = /bin/true\ntransfer_input_files = data/big\nqueue 1\n"


def begin(client: APIClient, content: bytes = CONTENT, **headers: Any) -> Response:
    body = {"sha256": hashlib.sha256(content).hexdigest(), "size_bytes": len(content)}
    return client.post(URL, body, format="json", **headers)


def append(client: APIClient, at: str, content: bytes, offset: Any, **headers: str) -> Response:
    return client.generic(
        "PATCH", at, content, content_type="application/partial-upload",
        headers={"Upload-Offset": str(offset), **headers},
    )  # fmt: skip


def uploaded(client: APIClient, content: bytes = CONTENT) -> int:
    begun = begin(client, content).json()
    done = append(client, begun["url"], content, begun["offset"]).json()
    assert done["is_complete"], done
    return int(done["id"])


def test_an_upload_is_begun_sent_in_pieces_and_told_by_headers(alice: APIClient) -> None:
    begun = begin(alice)
    at = begun["Location"]
    first = append(alice, at, CONTENT[:30], 0, **{"Upload-Complete": "?0"})
    looked = alice.head(at)
    last = append(alice, at, CONTENT[30:], 30, **{"Upload-Complete": "?1"})

    assert (begun.status_code, begun.json()["url"]) == (201, at)
    assert begun["Upload-Limit"] == f"max-append-size={conf().max_upload_bytes}"
    assert (first.status_code, first["Upload-Offset"], first["Upload-Complete"]) == (
        200, "30", "?0",
    )  # fmt: skip
    assert (looked["Upload-Offset"], looked["Upload-Length"]) == ("30", "100")
    assert "no-store" in looked["Cache-Control"]
    assert (last["Upload-Offset"], last["Upload-Complete"]) == ("100", "?1")
    assert last.json()["is_complete"]


def test_a_repeated_request_begins_one_upload(alice: APIClient) -> None:
    first = begin(alice, HTTP_IDEMPOTENCY_KEY="k")
    again = begin(alice, HTTP_IDEMPOTENCY_KEY="k")

    assert (first.status_code, again.status_code) == (201, 200)
    assert again["Location"] == first["Location"]
    assert begin(alice, b"other", HTTP_IDEMPOTENCY_KEY="k").status_code == 409
    assert ResumableUpload.objects.count() == 1


def test_what_is_there_complete_is_not_begun_again(alice: APIClient) -> None:
    there = uploaded(alice)

    again = begin(alice)

    assert (again.status_code, again.json()["id"], again["Upload-Complete"]) == (200, there, "?1")


def test_who_begins_anew_finds_the_upload_of_the_same_content(alice: APIClient) -> None:
    at = begin(alice)["Location"]
    append(alice, at, CONTENT[:30], 0)
    begin(alice, b"other")

    found = alice.get(URL, {"sha256": SHA256, "complete": "false"}).json()["results"]

    assert [(each["url"], each["offset"]) for each in found] == [(at, 30)]
    assert alice.get(URL, {"complete": "true"}).json()["results"] == []


@pytest.mark.parametrize(
    ("offset", "expected"), [(0, 30), (29, 30), (31, 30), (10**14, 30)]
)  # fmt: skip
def test_a_piece_elsewhere_is_refused_with_the_place_to_go_on(
    alice: APIClient, offset: int, expected: int
) -> None:
    at = begin(alice)["Location"]
    append(alice, at, CONTENT[:30], 0)

    refused = append(alice, at, b"x", offset)

    told = refused.json()
    assert (refused.status_code, told["type"]) == (409, "/problems/upload-offset/")
    assert (told["expected_offset"], told["provided_offset"]) == (expected, offset)


@pytest.mark.parametrize("offset", ["", "-1", "1.0", "?1", "1" * 16, "\u0661", "NaN"])
def test_an_offset_that_is_none_is_refused(alice: APIClient, offset: str) -> None:
    at = begin(alice)["Location"]

    [fault] = findings_in(append(alice, at, b"x", offset))

    assert fault["field"] == "Upload-Offset"


@pytest.mark.parametrize("value", ["", "1", "?2", "true"])
def test_an_end_that_is_none_is_refused(alice: APIClient, value: str) -> None:
    at = begin(alice)["Location"]

    [fault] = findings_in(append(alice, at, b"x", 0, **{"Upload-Complete": value}))

    assert fault["field"] == "Upload-Complete"


def test_a_last_piece_that_is_not_the_last_is_refused(alice: APIClient) -> None:
    at = begin(alice)["Location"]

    [fault] = findings_in(append(alice, at, b"x", 0, **{"Upload-Complete": "?1"}))

    assert fault["field"] == "Upload-Complete"
    assert alice.get(at).json()["offset"] == 0


def test_another_content_is_refused_with_both_hashes(alice: APIClient) -> None:
    at, other = begin(alice)["Location"], b"!" * 100

    refused = append(alice, at, other, 0)

    told = refused.json()
    assert (refused.status_code, told["type"]) == (400, "/problems/upload-hash/")
    assert told["expected_sha256"] == SHA256
    assert told["found_sha256"] == hashlib.sha256(other).hexdigest()
    assert alice.get(at).status_code == 404


def test_a_piece_is_a_request_and_as_large_as_one_at_most(alice: APIClient, settings: Any) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_UPLOAD_BYTES": 60}
    at = begin(alice)["Location"]

    assert append(alice, at, CONTENT[:61], 0).status_code == 413
    assert append(alice, at, CONTENT[:60], 0).status_code == 200
    assert append(alice, at, CONTENT[60:], 60).json()["is_complete"]


def test_a_body_in_chunks_or_as_json_is_refused(alice: APIClient) -> None:
    at = begin(alice)["Location"]
    chunked = alice.generic("PATCH", at, b"x", headers={"Upload-Offset": "0"}, CONTENT_LENGTH="")

    json_body = alice.patch(at, {}, format="json", headers={"Upload-Offset": "0"})

    assert findings_in(chunked)[0]["field"] == "Content-Length"
    assert json_body.status_code == 415


def test_an_upload_is_cancelled_by_its_owner_alone(
    alice: APIClient, people: SimpleNamespace, as_user: Callable[[User], APIClient]
) -> None:
    at, bob = begin(alice)["Location"], as_user(people.bob)

    assert bob.get(at).status_code == 404
    assert append(bob, at, CONTENT, 0).status_code == 404
    assert bob.delete(at).status_code == 404
    assert bob.get(URL).json()["results"] == []
    assert alice.delete(at).status_code == 204
    assert alice.get(at).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"sha256": SHA256},
        {"sha256": "x", "size_bytes": 1},
        {"sha256": SHA256, "size_bytes": 0},
        {"sha256": SHA256, "size_bytes": 10**15},
        {"sha256": SHA256, "size_bytes": 1, "name": "x"},
    ],
)
def test_a_faulty_beginning_is_refused(alice: APIClient, body: dict[str, Any]) -> None:
    assert findings_in(alice.post(URL, body, format="json"))
    assert not ResumableUpload.objects.exists()


def test_dags_take_uploads_beside_files(alice: APIClient) -> None:
    form = dag_form(uploads=json.dumps({"data/big": uploaded(alice)}))

    checked = alice.post("/api/v1/dags/check/", form)
    made = alice.post("/api/v1/dags/", dag_form(uploads=form["uploads"]))

    assert (checked.status_code, made.status_code) == (200, 201)
    assert WorkspaceFile.objects.get(path="data/big").blob_id == SHA256
    assert ResumableUpload.objects.get().counted_bytes == 0


def test_a_dag_file_may_be_an_upload(alice: APIClient) -> None:
    form = dag_form(files={})
    parts = {"a.dag": form["dag"].read(), "job.sub": b"executable = run.sh\n", "run.sh": b"#!\n"}
    numbers = {name: uploaded(alice, content) for name, content in parts.items()}

    made = alice.post("/api/v1/dags/", {"dag": "a.dag", "uploads": json.dumps(numbers)})

    assert made.status_code == 201, made.json()
    assert Dag.objects.get().name == "a"


def test_a_submission_is_repeated_under_its_key_after_its_upload_was_used(alice: APIClient) -> None:
    given = json.dumps({"data/big": uploaded(alice)})

    first, again = (
        alice.post("/api/v1/dags/", dag_form(uploads=given), HTTP_IDEMPOTENCY_KEY="k")
        for _ in range(2)
    )

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]


def test_jobs_take_uploads_beside_files(alice: APIClient) -> None:
    form = {"description": JOBS, "uploads": json.dumps({"data/big": uploaded(alice)})}

    checked = alice.post("/api/v1/jobs/check/", form)
    made = alice.post("/api/v1/jobs/", form)

    assert (checked.status_code, made.status_code) == (200, 201)
    workspace = Cluster.objects.get().workspace
    assert WorkspaceFile.objects.get(workspace=workspace).blob_id == SHA256


def test_a_table_of_parameters_may_be_an_upload(alice: APIClient) -> None:
    table = uploaded(alice, b"1\n2\n3\n")
    form = {
        "description": "executable = /bin/true\nqueue n from table.txt\n",
        "uploads": json.dumps({"table.txt": table}),
    }

    assert alice.post("/api/v1/jobs/", form).json()["size"] == 3


def test_schedules_take_uploads(alice: APIClient) -> None:
    form = dag_form(name="weekly", cron="0 6 * * mon", uploads=json.dumps({"big": uploaded(alice)}))

    assert alice.post("/api/v1/schedules/", form).status_code == 201
    assert ScheduleFile.objects.get(schedule=Schedule.objects.get(), path="big").blob_id == SHA256
    assert ResumableUpload.objects.get().counted_bytes == 0


def test_files_whose_uploads_cannot_be_taken_are_named(
    alice: APIClient, people: SimpleNamespace, as_user: Callable[[User], APIClient]
) -> None:
    given = {
        "theirs": uploaded(as_user(people.bob), b"theirs"),
        "half": begin(alice, b"half").json()["id"],
        "none": 10**12,
    }

    refused = alice.post("/api/v1/dags/", dag_form(uploads=json.dumps(given)))

    found = [(each["file"], each["field"]) for each in findings_in(refused)]
    assert found == [(name, "uploads") for name in given]
    assert not Dag.objects.exists()


@pytest.mark.parametrize(
    "text", ["[", "[]", "7", '{"a": "1"}', '{"a": true}', '{"a": 0}', '{"a": -1}', '{"a": 1e3}',
             '{"a": null}', '{"a": 9223372036854775808}', '{"\\u0000": 1}'],
)  # fmt: skip
@pytest.mark.parametrize("url", ["/api/v1/dags/check/", "/api/v1/jobs/check/"])
def test_a_faulty_object_of_uploads_is_refused(alice: APIClient, url: str, text: str) -> None:
    form = dag_form() if "dags" in url else {"description": JOBS}

    faults = findings_in(alice.post(url, {**form, "uploads": text}))

    assert {fault["field"].partition(".")[0] for fault in faults} == {"uploads"}


def test_uploads_are_a_text_and_given_once(alice: APIClient) -> None:
    as_file = SimpleUploadedFile("uploads", b"{}")

    for url, form in (("dags", dag_form()), ("jobs", {"description": JOBS})):
        for wrong in (as_file, ["{}", "{}"]):
            as_file.seek(0)
            [fault] = findings_in(alice.post(f"/api/v1/{url}/check/", {**form, "uploads": wrong}))
            assert fault["field"] == "uploads"


def test_a_name_that_leads_out_of_the_workspace_is_refused(alice: APIClient) -> None:
    given = json.dumps({"../big": uploaded(alice)})

    assert findings_in(alice.post("/api/v1/dags/", dag_form(uploads=given)))
    assert findings_in(
        alice.post("/api/v1/jobs/", {"description": JOBS, "uploads": given})
    )  # fmt: skip


def test_a_dag_file_that_came_by_an_upload_has_as_much_time_as_one_that_is_sent(
    tmp_path: Path,
) -> None:
    text = b"JOB A a.sub\n" + b"#\n" * 2_000_000
    path = tmp_path / "x.dag"
    path.write_bytes(text)
    known = KnownContent(FileContent(path), size_bytes=len(text), sha256=SHA256, upload_id=1)

    limits = [
        submission_of(SubmissionParts(dags=[Upload("x.dag", content)])).deadline.limit_s
        for content in (io.BytesIO(text), known)
    ]

    assert limits == [13.0, 13.0]


def test_data_that_came_by_uploads_needs_no_time(tmp_path: Path) -> None:
    size_bytes = conf().max_dag_text_bytes + 1
    known = KnownContent(
        FileContent(tmp_path / "none"), size_bytes=size_bytes, sha256=SHA256, upload_id=1
    )
    parts = SubmissionParts(
        dags=[Upload("x.dag", io.BytesIO(b"JOB A a.sub\n"))], files=[Upload("big", known)]
    )

    assert submission_of(parts).deadline.limit_s == 5.0

"""Forms whose large files a script has sent before, by uploads that resume."""

from __future__ import annotations

import io
import json
import re
import zipfile
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests.wms.jobs.uploads.sending import uploaded
from wms.dags.models import Dag
from wms.jobs.models import Cluster, ResumableUpload, WorkspaceFile

_SUB = b"executable = /bin/true\ntransfer_input_files = big\nqueue 1\n"
_DAG = b"JOB A job.sub\n"


def _zipped(**files: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _submit(client: Client, parts: Any, *, how: str = "submit", nonce: str = "") -> Any:
    data = {
        "dag": SimpleUploadedFile("work.dag", _DAG),
        "files": [SimpleUploadedFile("job.sub", _SUB)],
        "uploads": parts if isinstance(parts, str) else json.dumps(parts),
        "do": how,
        "nonce": nonce,
    }
    return client.post(reverse("web:submit"), data)


def test_a_dag_takes_files_folders_and_archives_that_came_before_its_form(
    alice: Client, people: SimpleNamespace
) -> None:
    ids = [uploaded(people.alice, content).pk for content in (b"1", b"2", _zipped(inside=b"3"))]
    parts = {"files": {"big": ids[0]}, "folder": {"top/in/x": ids[1]}, "archive": {"a.zip": ids[2]}}

    checked = _submit(alice, parts, how="check")
    first = _submit(alice, parts, nonce="n")
    again = _submit(alice, parts, nonce="n")

    assert checked.status_code == 200
    assert first["Location"] == again["Location"]
    dag = Dag.objects.get()
    paths = {each.path: each.blob.size_bytes for each in dag.workspace.files.select_related("blob")}
    assert (paths["big"], paths["in/x"], paths["inside"]) == (1, 1, 1)
    used = ResumableUpload.objects.filter(pk__in=ids[:2])
    assert {each.counted_bytes for each in used} == {0}


def test_jobs_take_files_that_came_before_their_form(
    alice: Client, people: SimpleNamespace
) -> None:
    parts = json.dumps({"files": {"big": uploaded(people.alice).pk}})
    data = {"description": _SUB.decode(), "uploads": parts, "do": "submit"}

    answer = alice.post(reverse("web:submit-jobs"), data)

    cluster = Cluster.objects.get()
    assert answer["Location"] == reverse("web:cluster", args=[cluster.pk])
    assert WorkspaceFile.objects.filter(path="big").exists()


@pytest.mark.parametrize("parts", ["[]", "{", '{"dag": {"big": 1}}', '{"files": {"big": "1"}}'])
def test_a_form_that_names_no_uploads_of_files_is_refused(alice: Client, parts: str) -> None:
    assert _submit(alice, parts).status_code == 400
    assert not Dag.objects.exists()


def test_uploads_of_others_are_told_by_the_names_of_their_files_and_change_nothing(
    alice: Client, people: SimpleNamespace
) -> None:
    foreign = uploaded(people.bob)

    answer = _submit(alice, {"files": {"big": foreign.pk}})

    assert answer.status_code == 400
    assert '<span class="place">big' in re.sub(r"\s+", " ", answer.content.decode())
    assert not Dag.objects.exists()


def test_a_page_begins_uploads_by_its_session_and_the_token_of_its_form(
    people: SimpleNamespace,
) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(people.alice)
    page = browser.get(reverse("web:submit")).content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    at = re.search(r'id="uploads" data-at="([^"]+)"', page)
    assert token is not None
    assert at is not None

    def begin(**headers: str) -> int:
        body = json.dumps({"sha256": "0" * 64, "size_bytes": 5})
        sent = browser.post(at[1], body, content_type="application/json", headers=headers)
        return sent.status_code

    assert begin() == 403
    assert begin(**{"X-CSRFToken": token[1]}) == 201

"""Archives by API and page: a DAG's download, what is kept, its parts, removal with a reason."""

from __future__ import annotations

import io
import json
import zipfile
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from portal.api.dags.shapes import DagSerializer
from portal.api.jobs.shapes import AttemptSerializer, JobSerializer
from portal.api.nodes.shapes import NodeSerializer, ScriptRunSerializer
from portal.api.placements.shapes import PlacementAttemptSerializer, PlacementRequestSerializer
from portal.api.shapes import CAUSED_EVENT_FIELDS
from tests import factories
from tests.archive_files import kept_archive
from wms.archives.models import ArchivedDag
from wms.archives.row_kinds import KINDS
from wms.dags.models import Dag
from wms.dags.services.dags import remove_dags

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> SimpleNamespace:
    return factories.people()


def logged_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_the_archive_of_a_dag_is_sent_when_it_has_ended(people: SimpleNamespace) -> None:
    dag = factories.dag(people.alice)
    client, address = logged_in(people.bob), f"/api/v1/dags/{dag.pk}/archive/"
    assert client.get(address).status_code == 409
    assert b"archive-dag" not in client.get(f"/dags/{dag.pk}/").content

    remove_dags([dag.pk], actor=factories.SYSTEM, reason="test")
    factories.turn()
    assert Dag.objects.get(pk=dag.pk).ended_at is not None
    assert b"archive-dag" in client.get(f"/dags/{dag.pk}/").content
    answer = client.get(address)

    assert answer.headers["Content-Disposition"] == f'attachment; filename="dag-{dag.pk}.zip"'
    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    assert (manifest["dag"]["id"], manifest["dag"]["owner"]) == (dag.pk, "alice")


def test_a_kept_archive_is_listed_shown_and_read(people: SimpleNamespace) -> None:
    archive = kept_archive(people.olga, node_count=250)
    client, address = logged_in(people.olga), f"/api/v1/archives/{archive.pk}/"

    listed = client.get("/api/v1/archives/").json()["results"]
    assert [each["id"] for each in listed] == [archive.pk]
    detail = client.get(address).json()
    assert (detail["dag"], detail["nodes"]) == (7, {"done": 249, "failed": 1})
    assert detail["rows"] == {"dags": 1, "nodes": 250, "events": 1, "files": 1}
    members = client.get(f"{address}members/").json()
    assert members[1]["name"] == "nodes/000001.jsonl"
    rows = b"".join(client.get(f"{address}members/nodes/000001.jsonl").streaming_content)
    assert json.loads(rows.splitlines()[-1])["name"] == "N249"
    for name in ("nodes/000002.jsonl", "../manifest.json", "cows"):
        assert client.get(f"{address}members/{name}").status_code == 404
    whole = client.get(f"{address}file/")
    assert len(b"".join(whole.streaming_content)) == archive.blob.size_bytes

    page = f"/archives/{archive.pk}/"
    assert b"its job failed with exit code 3" in client.get(page).content
    first = client.get(page, {"tab": "nodes"}).content.decode()
    assert ("N99<" in first, "N100<" in first, "from=100" in first) == (True, False, True)
    failed = client.get(page, {"tab": "nodes", "state": "failed"}).content.decode()
    assert ("N249<" in failed, "N1<" in failed) == (True, False)
    named = client.get(page, {"tab": "nodes", "q": "N24", "from": "245"}).content.decode()
    assert ("N245<" in named, "N244<" in named) == (True, False)
    assert b"result.root" in client.get(page, {"tab": "files"}).content
    assert b"result.root" not in client.get(page, {"tab": "files", "which": "submitted"}).content
    assert client.get(page, {"tab": "events", "from": "9" * 30}).status_code == 200


def test_an_operator_removes_one_with_a_reason(people: SimpleNamespace) -> None:
    first, second = (kept_archive(people.olga, dag_id=number) for number in (7, 8))
    client = logged_in(people.olga)
    address = f"/api/v1/archives/{first.pk}/remove/"
    assert client.post(address, {}, content_type="application/json").status_code == 400
    done = client.post(address, {"reason": "room"}, content_type="application/json")
    assert (done.status_code, done.json()["id"]) == (200, first.pk)
    refused = client.post(f"/archives/{second.pk}/remove/", {"reason": ""})
    assert refused.status_code == 400
    assert ArchivedDag.objects.get() == second
    assert client.post(f"/archives/{second.pk}/remove/", {"reason": "room"}).status_code == 302
    assert not ArchivedDag.objects.exists()


def test_rows_have_the_names_of_the_api() -> None:
    """But for what is another row's, or of what goes on."""
    shapes = {
        "dags": (DagSerializer, {"unmatched_reason"}),
        "nodes": (NodeSerializer, {"parents"}),
        "jobs": (JobSerializer, {"owner", "not_before"}),
        "attempts": (AttemptSerializer, {"files", "transferring"}),
        "script_runs": (ScriptRunSerializer, set()),
        "placements": (PlacementRequestSerializer, set()),
        "placement_attempts": (
            PlacementAttemptSerializer, {"choice", "choice_told", "bytes_per_s"},
        ),
    }  # fmt: skip
    for kind, (shape, left_out) in shapes.items():
        assert set(shape().fields) - left_out - set(KINDS[kind]) == set(), kind
    assert set(CAUSED_EVENT_FIELDS) <= set(KINDS["events"])

"""Outputs of jobs and clusters: lists, downloads, archives, and what is told after their end."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from tests import factories
from tests.wms.jobs.sandboxes.samples import (
    cluster_of,
    end,
    ended_cluster,
    go_on,
    job_of,
    send,
    take_next,
)
from wms.jobs.models import Cluster, OutputLease
from wms.jobs.sandboxes import sweep

REMOVED = "/problems/outputs-removed/"


@pytest.fixture
def cluster(people: SimpleNamespace) -> Cluster:
    return ended_cluster(people.alice, 2)


def outputs_of(cluster: Cluster, process: int) -> str:
    return f"/api/v1/jobs/{job_of(cluster, process).pk}/outputs"


def names(answer: Any) -> list[str]:
    assert answer["Content-Type"] == "application/x-tar"
    content = io.BytesIO(b"".join(answer.streaming_content))
    with tarfile.open(fileobj=content, mode="r:") as tar:
        return tar.getnames()


def remove_all() -> None:
    OutputLease.objects.update(kept_until=timezone.now() - timedelta(days=1))
    while sweep.remove_next(timezone.now()) is not None:
        pass


def places_held() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])


def test_outputs_are_listed_with_hash_and_address(alice: APIClient, cluster: Cluster) -> None:
    answer = alice.get(f"{outputs_of(cluster, 1)}/").json()

    [file] = answer["files"]
    assert (file["name"], file["kind"], file["size_bytes"]) == ("out.root", "output", 4)
    assert file["sha256"] == hashlib.sha256(b"of 1").hexdigest()
    assert (answer["state"], answer["size_bytes"]) == ("done", 4)
    assert answer["kept_until"] is not None
    sent = alice.get(file["url"])
    assert b"".join(sent.streaming_content) == b"of 1"
    assert sent["Content-Disposition"] == 'attachment; filename="out.root"'


def test_a_job_that_runs_has_no_outputs_yet(alice: APIClient, people: SimpleNamespace) -> None:
    cluster = cluster_of(people.alice, 1)
    take_next()

    answer = alice.get(f"{outputs_of(cluster, 0)}/").json()

    assert answer == {"state": "matched", "kept_until": None, "size_bytes": 0, "files": []}


def test_jobs_of_dags_list_their_files_too(alice: APIClient, people: SimpleNamespace) -> None:
    factories.running_dag(people.alice, node_count=1)
    job = factories.run_job(factories.pilot(), exit_code=1)
    assert job is not None

    answer = alice.get(f"/api/v1/jobs/{job.pk}/outputs/").json()

    assert {file["kind"] for file in answer["files"]} == {"stdout", "stderr"}
    assert answer["kept_until"] is None


def test_a_name_that_is_none_of_the_outputs_is_not_found(
    alice: APIClient, cluster: Cluster
) -> None:
    assert alice.get(f"{outputs_of(cluster, 0)}/nothing").status_code == 404


def test_outputs_of_a_job_come_as_one_archive(alice: APIClient, cluster: Cluster) -> None:
    answer = alice.get(f"{outputs_of(cluster, 1)}.tar")

    assert names(answer) == ["1/out.root", "MANIFEST.json"]


def test_outputs_of_a_cluster_come_as_one_archive(alice: APIClient, cluster: Cluster) -> None:
    answer = alice.get(f"/api/v1/clusters/{cluster.pk}/outputs.tar")

    assert answer["Content-Disposition"] == f'attachment; filename="cluster-{cluster.pk}.tar"'
    assert names(answer) == ["0/out.root", "1/out.root", "MANIFEST.json"]


def test_an_archive_can_have_the_failed_jobs_alone(
    alice: APIClient, people: SimpleNamespace
) -> None:
    cluster = cluster_of(people.alice, 2)
    for exit_code in (0, 1):
        attempt = take_next()
        send(attempt, {"out.root": b"x"})
        end(attempt, exit_code)
    go_on(cluster)
    failed = alice.get(f"/api/v1/clusters/{cluster.pk}/outputs.tar?state=failed")

    assert len(names(failed)) == 2


@pytest.mark.parametrize("query", ["state=odd", "colour=red", "sort=name"])
def test_a_filter_that_is_not_understood_is_refused(
    alice: APIClient, cluster: Cluster, query: str
) -> None:
    answer = alice.get(f"/api/v1/clusters/{cluster.pk}/outputs.tar?{query}")

    assert answer.status_code == 400
    assert [finding["field"] for finding in answer.json()["findings"]] == [query.split("=")[0]]


def test_outputs_that_have_gone_are_told_as_such(alice: APIClient, cluster: Cluster) -> None:
    remove_all()

    own = outputs_of(cluster, 0)
    log = own.replace("outputs", "stdout")
    for address in (
        f"{own}/", f"{own}/out.root", f"{own}.tar", log,
        f"/api/v1/clusters/{cluster.pk}/outputs.tar",
    ):  # fmt: skip
        answer = alice.get(address)
        assert (answer.status_code, json.loads(answer.content)["type"]) == (404, REMOVED), address


def test_an_archive_has_a_place_among_the_downloads_until_it_is_sent(
    alice: APIClient, cluster: Cluster
) -> None:
    before = places_held()
    answer = alice.get(f"{outputs_of(cluster, 0)}.tar")

    assert places_held() == before + 2
    names(answer)
    assert places_held() == before

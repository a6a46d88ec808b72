"""Logical files: listed, read, removed and forgotten through the API and on their pages."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from tests import factories
from wms.placement.catalogue.models import LogicalFile, Replica
from wms.placement.models import PlacementRequest
from wms.placement.storages.models import Storage
from wms.placement.storages.services import StorageSpec, create_storage

URL = "/api/v1/logical-files/"


@pytest.fixture
def file(people: SimpleNamespace) -> LogicalFile:
    """A file of Alice at two storages."""
    made = LogicalFile.objects.create(
        name="/run/a b", owner=people.alice, size_bytes=5, sha256="1" * 64
    )
    for name in ("s1", "s2"):
        create_storage(StorageSpec(name, [f"s3://{name}/"]), actor=factories.SYSTEM)
        Replica.objects.create(file=made, storage=Storage.objects.get(name=name))
    return made


def test_a_file_is_listed_and_shown_with_its_replicas(alice: APIClient, file: LogicalFile) -> None:
    [listed] = alice.get(f"{URL}?name=RUN").json()["results"]
    told = alice.get(f"{URL}{file.pk}/").json()

    assert (listed["url"], listed["replicas"]) == ("lfn:/run/a%20b", 2)
    assert [(each["storage"], each["urls"]) for each in told["located"]] == [
        ("s1", ["s3://s1/run/a%20b"]),
        ("s2", ["s3://s2/run/a%20b"]),
    ]
    assert alice.get(f"{URL}?name=other").json()["results"] == []


def test_a_removal_is_a_request_of_the_owner(alice: APIClient, file: LogicalFile) -> None:
    answer = alice.post(f"{URL}{file.pk}/remove/", {"reason": "old", "storage": "s1"}, "json")

    assert answer.status_code == 201
    request = PlacementRequest.objects.get(pk=answer.json()["request"])
    assert (request.kind, request.source_url) == ("remove", "lfn:/run/a%20b")
    assert request.source_storage.name == "s1"


def test_a_replica_is_forgotten(alice: APIClient, file: LogicalFile) -> None:
    at = f"{URL}{file.pk}/forget/"

    assert alice.post(at, {"reason": "lost"}, "json").status_code == 409
    assert alice.post(at, {"storage": "s1"}, "json").status_code == 400
    assert alice.post(at, {"storage": "s1", "reason": "lost"}, "json").status_code == 204
    assert alice.get(f"{URL}{file.pk}/").json()["replicas"] == 1


def test_the_pages_find_a_file_by_its_beginning_and_remove_it(
    people: SimpleNamespace, file: LogicalFile
) -> None:
    client = Client()
    client.force_login(people.alice)

    assert b"/run/a b" in client.get(reverse("web:logical-files") + "?name=/run").content
    assert b"/run/a b" not in client.get(reverse("web:logical-files") + "?name=/tmp/").content
    page = client.get(reverse("web:logical-file", args=[file.pk])).content.decode()
    assert "s3://s2/run/a%20b" in page
    refused = client.post(reverse("web:remove-logical-file", args=[file.pk]), {"storage": "s1"})
    assert refused.status_code == 400
    order = {"storage": "s1", "reason": "old"}
    removed = client.post(reverse("web:remove-logical-file", args=[file.pk]), order)
    assert removed["Location"] == reverse("web:placement", args=[PlacementRequest.objects.get().pk])
    forgotten = client.post(reverse("web:forget-replica", args=[file.pk]), order)
    assert forgotten["Location"] == reverse("web:logical-files")
    assert [each.storage.name for each in Replica.objects.all()] == ["s2"]

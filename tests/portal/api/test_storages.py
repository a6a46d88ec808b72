"""Storages: listed, set up, changed and deleted through the API."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from rest_framework.test import APIClient

from tests import factories
from wms.core.models import AuditEntry, User

URL = "/api/v1/storages/"
POOL = {"name": "pool", "endpoints": ["https://pool.example/data"], "sites": ["UW"]}


@pytest.fixture
def olga(people: SimpleNamespace, as_user: Callable[[User], APIClient]) -> APIClient:
    return as_user(people.olga)


@pytest.fixture
def made(olga: APIClient) -> APIClient:
    factories.site("UW")
    answer = olga.post(f"{URL}?reason=new+disks", POOL | {"space_bytes": 5}, format="json")
    assert answer.status_code == 201
    return olga


def test_an_operator_sets_a_storage_up_and_everybody_sees_it(
    made: APIClient, alice: APIClient
) -> None:
    [told] = alice.get(URL).json()["results"]

    assert told["endpoints"] == ["https://pool.example/data/"]
    assert (told["sites"], told["space_bytes"], told["allocated_bytes"]) == (["UW"], 5, 0)
    assert alice.get(f"{URL}pool/").json()["waiting"] == 0
    assert AuditEntry.objects.get(action="create storage").reason == "new disks"


def test_a_storage_is_set_anew_as_a_whole_and_deleted(made: APIClient) -> None:
    changed = made.put(
        f"{URL}pool/", POOL | {"max_transfers": 3, "transfer_requirements": "false"}, format="json"
    ).json()

    assert (changed["max_transfers"], changed["space_bytes"]) == (3, None)
    assert changed["transfer_requirements"] == "false"
    assert made.delete(f"{URL}pool/?reason=gone").status_code == 204
    assert made.get(f"{URL}pool/").status_code == 404


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"endpoints": []}, "endpoints"),
        ({"endpoints": ["gopher://x/"]}, "endpoints"),
        ({"sites": ["nowhere"]}, "sites"),
        ({"max_transfers": -1}, "max_transfers"),
        ({"transfer_requirements": "Owner ="}, "transfer_requirements"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_fault_is_told_with_its_field(olga: APIClient, change: dict, field: str) -> None:
    answer = olga.post(URL, {**POOL, "sites": [], **change}, format="json")

    assert answer.status_code == 400
    assert field in str(answer.json())
    assert olga.get(URL).json()["results"] == []


def test_others_do_not_set_storages_up(alice: APIClient) -> None:
    assert alice.post(URL, {}, format="json").status_code == 403

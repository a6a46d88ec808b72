"""Acting on many objects by the API: a preview, then its token."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests import factories
from tests.wms.bulk.conftest import finish
from wms.bulk.models import BulkOperation
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.services.dags import remove_dags

BULK = "/api/v1/bulk/"
AsUser = Callable[[User], APIClient]


def _preview(client: APIClient, **given: Any) -> Any:
    body = {"list": "dags", "action": "hold", "dry_run": True, **given}
    return client.post(BULK, body, format="json")


def _confirm(client: APIClient, preview: Any, **given: Any) -> Any:
    body = {"operation_token": preview.data["operation_token"], **given}
    return client.post(BULK, body, format="json")


def test_two_steps_hold_all_dags_that_a_filter_means(
    alice: APIClient, people: SimpleNamespace
) -> None:
    dags = [factories.dag(people.alice, name=f"d{n}.dag") for n in range(2)]
    factories.dag(people.bob)

    preview = _preview(alice, filter={"owner": ["alice"]}, reason="disk full")
    untouched = set(Dag.objects.values_list("state", flat=True))
    begun = _confirm(alice, preview)
    again = _confirm(alice, preview)
    finish(BulkOperation.objects.get())
    done = alice.get(f"{BULK}{begun.data['id']}/").data
    items = alice.get(f"{BULK}{begun.data['id']}/items/", {"outcome": "done", "page_size": 1}).data

    assert (preview.status_code, begun.status_code, again.status_code) == (201, 202, 202)
    assert untouched == {"idle"}
    assert preview.data["total"] == preview.data["fitting"] == 2
    assert preview.data["states"] == [{"name": "idle", "count": 2}]
    assert preview.data["groups"] == [{"name": "alice", "count": 2}]
    assert [sample["id"] for sample in preview.data["samples"]] == [dag.pk for dag in dags]
    assert (begun.data["state"], done["state"]) == ("confirmed", "done")
    assert done["counts"] == {"pending": 0, "done": 2, "skipped": 0, "failed": 0}
    assert done["filter"] == {"owner": ["alice"]}
    assert done["reason"] == "disk full"
    assert [item["object_id"] for item in items["results"]] == [dags[0].pk]
    assert items["next"]
    assert set(Dag.objects.filter(owner=people.alice).values_list("state", flat=True)) == {"held"}
    assert Dag.objects.get(owner=people.bob).state == "idle"


@pytest.mark.parametrize(
    ("given", "status", "told"),
    [
        ({"dry_run": False, "ids": [1]}, 400, "must be true"),
        ({}, 400, "give either a filter or ids"),
        ({"ids": [1], "filter": {}}, 400, "give either a filter or ids"),
        ({"ids": [987654]}, 404, "There is no DAG 987654"),
        ({"ids": [10**30]}, 400, "64 bits"),
        ({"filter": {"colour": ["red"]}}, 400, "is no filter of this list"),
        ({"filter": {}, "action": "explode"}, 404, "One cannot 'explode' DAGs"),
        ({"filter": {}, "arguments": {"a": 1}}, 400, "is no argument of hold"),
        ({"list": "audit", "filter": {}}, 400, "is not a valid choice"),
        ({"filter": {"owner": ["nobody"]}}, 409, "No DAG fits"),
        ({"filter": {}, "reason": "x\0"}, 400, "reason"),
        ({"operation_token": "forged"}, 400, "begins the operation"),
        ({"operation_token": "forged", "dry_run": False}, 400, "does not come from a preview"),
    ],
)
def test_bad_input_is_told_and_stores_nothing(
    alice: APIClient, people: SimpleNamespace, given: dict[str, Any], status: int, told: str
) -> None:
    factories.dag(people.alice)

    answer = _preview(alice, **given)

    assert (answer.status_code, told in answer.data["detail"]) == (status, True), answer.data
    assert not BulkOperation.objects.exists()


def test_a_token_of_somebody_else_confirms_nothing(
    alice: APIClient, people: SimpleNamespace, as_user: AsUser
) -> None:
    factories.dag(people.alice)
    preview = _preview(alice, filter={}, reason="x")

    answer = _confirm(as_user(people.sam), preview)

    assert answer.status_code == 400
    assert "token" in answer.data["detail"]


def test_a_count_that_is_another_by_now_is_a_conflict(
    alice: APIClient, people: SimpleNamespace
) -> None:
    dags = [factories.dag(people.alice, name=f"d{n}.dag") for n in range(2)]
    preview = _preview(alice, filter={"state": ["idle"]}, reason="x")
    remove_dags([dags[0].pk], actor=Actor.person(people.alice), reason="no use")

    refused = _confirm(alice, preview, expected_count=2)
    accepted = _confirm(alice, preview, expected_count=2, accept_changes=True)

    assert (refused.status_code, accepted.status_code) == (409, 202)
    assert accepted.data["counts"] == {"pending": 1, "done": 0, "skipped": 1, "failed": 0}


def test_what_cannot_be_taken_back_of_others_needs_the_count(
    people: SimpleNamespace, as_user: AsUser
) -> None:
    factories.dag(people.alice)
    sam = as_user(people.sam)
    preview = _preview(sam, filter={}, action="remove", reason="no use")

    assert preview.data["needs_expected_count"] is True
    assert _confirm(sam, preview).status_code == 400
    assert _confirm(sam, preview, expected_count=1).status_code == 202


def test_a_stopped_operation_is_tried_again(alice: APIClient, people: SimpleNamespace) -> None:
    dag = factories.dag(people.alice)
    begun = _confirm(alice, _preview(alice, ids=[dag.pk], reason="x")).data
    address = f"{BULK}{begun['id']}/"

    too_early = alice.post(f"{address}retry/")
    stopped = alice.post(f"{address}stop/")
    again = alice.post(f"{address}retry/")
    listed = alice.get(BULK, {"state": "stopped"}).data["results"]

    assert (too_early.status_code, stopped.status_code, again.status_code) == (409, 200, 201)
    assert stopped.data["state"] == "stopped"
    assert again.data["operation"]["retry_of"] == begun["id"]
    assert _confirm(alice, again).status_code == 202
    assert [each["id"] for each in listed] == [begun["id"]]

"""`?fields=`: of objects and lists the members that were asked for, and no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests import factories


@pytest.fixture
def dag(people: SimpleNamespace) -> Any:
    return factories.dag(people.alice, node_count=2)


def test_an_object_has_the_members_that_are_named(alice: APIClient, dag: Any) -> None:
    answer = alice.get(f"/api/v1/dags/{dag.pk}/?fields=state,id")

    assert answer.json() == {"id": dag.pk, "state": "idle"}


def test_objects_of_a_list_have_them_and_the_page_stays_whole(alice: APIClient, dag: Any) -> None:
    page = alice.get("/api/v1/dags/?fields=id&fields=state&page_size=1").json()

    assert page["results"] == [{"id": dag.pk, "state": "idle"}]
    assert page.keys() == {"next", "previous", "next_cursor", "previous_cursor", "results"}


def test_the_next_page_has_the_same_members(alice: APIClient, dag: Any) -> None:
    first = alice.get(f"/api/v1/dags/{dag.pk}/nodes/?fields=name&page_size=1").json()

    assert alice.get(first["next"]).json()["results"][0].keys() == {"name"}


@pytest.mark.parametrize("path", ["dags/", "pilots/", "me/", "dags/{dag}/", "tokens/"])
def test_an_unknown_name_is_refused_with_those_that_there_are(
    alice: APIClient, dag: Any, path: str
) -> None:
    answer = alice.get(f"/api/v1/{path.format(dag=dag.pk)}?fields=nothing")

    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    told = answer.json()
    assert told["type"] == "/problems/invalid-input/"
    [finding] = told["findings"]
    assert finding["field"] == "fields"
    assert "id" in finding["message"] or "username" in finding["message"]


def test_no_name_means_all(alice: APIClient, dag: Any) -> None:
    whole = alice.get(f"/api/v1/dags/{dag.pk}/").json()

    assert alice.get(f"/api/v1/dags/{dag.pk}/?fields=").json() == whole


def test_a_refusal_stays_as_it_is(alice: APIClient) -> None:
    assert alice.get("/api/v1/dags/1234567/?fields=id").status_code == 404


def test_the_schema_tells_it_of_objects_and_lists(schema: dict[str, Any]) -> None:
    def takes(path: str) -> bool:
        parameters = schema["paths"][path]["get"]["parameters"]
        return any(each["name"] == "fields" for each in parameters)

    assert takes("/api/v1/dags/")
    assert takes("/api/v1/dags/{dag_id}/")

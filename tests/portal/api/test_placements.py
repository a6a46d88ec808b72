"""Placement requests: listed, read, removed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from tests import factories
from wms.dags.lifecycle import DATA_TOPIC
from wms.dags.models import Dag
from wms.placement.models import PlacementRequest
from wms.placement.operations import end_attempt, start_attempt
from wms.placement.submission import submit_requests

URL = "/api/v1/placement-requests/"
AD = '[ dap_type = "transfer"; src_url = "file:///in/a"; dest_url = "file:///out/b" ]'


@pytest.fixture
def dag(people: SimpleNamespace) -> Dag:
    return factories.running_dag(people.alice, node_count=1)


def _request(dag: Dag) -> int:
    [pk] = submit_requests(
        AD,
        workspace=dag.workspace,
        directory="",
        owner=dag.owner,
        topic=DATA_TOPIC,
        topic_key=dag.pk,
        actor=factories.SYSTEM,
    )
    return pk


def test_a_request_is_shown_with_its_attempts_and_events(alice: APIClient, dag: Dag) -> None:
    pk = _request(dag)
    start_attempt(pk, timezone.now())
    end_attempt(pk, exit_code=7, message="no route", now=timezone.now())

    told = alice.get(f"{URL}{pk}/").json()

    assert (told["state"], told["state_reason"]) == ("rescheduled", "no route")
    assert [(a["number"], a["exit_code"]) for a in told["attempts"]] == [(1, 7)]
    assert [event["event"] for event in told["events"]] == ["start", "reschedule"]
    assert told["source_url"] == "file:///in/a"


_COUNTS = {
    "": 1,
    "?state=received": 1,
    "?state=failed": 0,
    "?owner=alice": 1,
    "?owner=bob": 0,
    "?url=OUT/b": 1,
    "?url=elsewhere": 0,
    "?dag=999999": 0,
}


def test_the_list_is_narrowed(alice: APIClient, dag: Dag) -> None:
    _request(dag)

    counts = {query: len(alice.get(f"{URL}{query}").json()["results"]) for query in _COUNTS}

    assert counts == _COUNTS


def test_the_requests_of_a_dag_are_found(alice: APIClient, dag: Dag) -> None:
    _request(dag)

    assert len(alice.get(f"{URL}?dag={dag.pk}").json()["results"]) == 1


def test_a_request_is_removed_once_and_with_a_reason(alice: APIClient, dag: Dag) -> None:
    pk = _request(dag)

    without = alice.post(f"{URL}{pk}/remove/", {}, format="json")
    removed = alice.post(f"{URL}{pk}/remove/", {"reason": "wrong file"}, format="json")
    again = alice.post(f"{URL}{pk}/remove/", {"reason": "wrong file"}, format="json")

    assert (without.status_code, removed.status_code, again.status_code) == (400, 200, 409)
    request = PlacementRequest.objects.get()
    assert (request.state, request.state_reason) == ("removed", "wrong file")


@pytest.mark.parametrize("body", [{}, {"reason": "wrong file"}])
def test_what_does_not_exist_is_not_found_with_and_without_a_reason(
    alice: APIClient, body: dict[str, str]
) -> None:
    refused = alice.post(f"{URL}4711/remove/", body, format="json")

    assert refused.status_code == 404

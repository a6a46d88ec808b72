"""Listing, reading and steering DAGs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from rest_framework.test import APIClient

from tests import factories
from wms.core.models import AuditEntry, User

URL = "/api/v1/dags/"
AsUser = Callable[[User], APIClient]


def _names(client: APIClient, query: str = "") -> list[str]:
    answer = client.get(f"{URL}{query}")
    assert answer.status_code == 200, answer.content
    return [dag["name"] for dag in answer.json()["results"]]


def test_the_latest_dag_comes_first(alice: APIClient, people: SimpleNamespace) -> None:
    for name in ("one.dag", "two.dag", "three.dag"):
        factories.dag(people.alice, name=name)

    assert _names(alice) == ["three", "two", "one"]


def test_pages_follow_one_another_when_dags_are_added(
    alice: APIClient, people: SimpleNamespace
) -> None:
    for number in range(5):
        factories.dag(people.alice, name=f"d{number}.dag")
    first = alice.get(f"{URL}?page_size=2").json()
    factories.dag(people.alice, name="new.dag")

    second = alice.get(first["next"]).json()
    third = alice.get(second["next"]).json()

    pages = [[dag["name"] for dag in page["results"]] for page in (first, second, third)]
    assert pages == [["d4", "d3"], ["d2", "d1"], ["d0"]]
    assert third["next"] is None
    back = alice.get(second["previous"]).json()
    assert [dag["name"] for dag in back["results"]] == ["d4", "d3"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?owner=bob", ["b"]),
        ("?state=running", ["r"]),
        ("?state=running&state=idle&owner=alice", ["a", "r"]),
        ("?site=UW", ["r"]),
        ("?name=B", ["b"]),
        ("?name=nothing", []),
    ],
)
def test_the_list_is_narrowed(
    alice: APIClient, people: SimpleNamespace, query: str, expected: list[str]
) -> None:
    factories.running_dag(people.alice, name="r.dag")
    factories.dag(people.bob, name="b.dag")
    factories.dag(people.alice, name="a.dag")

    assert _names(alice, query) == expected


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?state=sleeping", "state"),
        ("?stat=running", "stat"),
        ("?page_size=0", "page_size"),
        ("?page_size=ten", "page_size"),
        ("?page_size=100000", "page_size"),
        ("?attention=maybe", "attention"),
        ("?cursor=cD14", "cursor"),
        ("?name=%00", "name"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused_at_its_field(
    alice: APIClient, query: str, field: str
) -> None:
    answer = alice.get(f"{URL}{query}")

    assert answer.status_code == 400
    assert [finding["field"] for finding in answer.json()["findings"]] == [field]


def test_a_cursor_that_is_none_is_refused(alice: APIClient) -> None:
    assert alice.get(f"{URL}?cursor=%ff").status_code == 400


def test_a_dag_is_shown_with_its_match(alice: APIClient, people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice)

    shown = alice.get(f"{URL}{dag.pk}/").json()

    assert (shown["state"], shown["site"]) == ("running", "UW")
    assert shown["match_attributes"]["Name"] == "UW"
    assert shown["matched_at"].endswith("Z")
    assert shown["nodes"] == {
        "total": 2,
        "done": 0,
        "submitted": 2,
        "ready": 0,
        "failed": 0,
        "futile": 0,
        "skipped": 0,
    }


@pytest.mark.parametrize("path", ["", "nodes/", "events/", "node-events/", "files/", "files/x"])
def test_a_dag_that_is_not_there_is_not_found(alice: APIClient, path: str) -> None:
    answer = alice.get(f"{URL}999/{path}")

    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"


def test_an_id_beyond_all_numbers_is_not_found(alice: APIClient) -> None:
    assert alice.get(f"{URL}{10**30}/").status_code == 404
    assert alice.get(f"{URL}{10**30}/nodes/").status_code == 404


def test_nodes_come_in_the_order_of_the_file_with_their_parents(
    alice: APIClient, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice, node_count=3, is_chain=True)

    nodes = alice.get(f"{URL}{dag.pk}/nodes/?page_size=2").json()

    assert [(node["name"], node["parents"]) for node in nodes["results"]] == [
        ("A1", []),
        ("A2", ["A1"]),
    ]
    first = nodes["results"][0]
    assert (first["state"], first["submit_description"]) == ("submitted", "job.sub")
    assert first["variables"] == {"number": "1"}
    assert alice.get(f"/api/v1/jobs/{first['job']}/").json()["dag"] == dag.pk
    [last] = alice.get(nodes["next"]).json()["results"]
    assert last["name"] == "A3"


def test_nodes_are_narrowed_by_state(alice: APIClient, people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice, node_count=3, is_chain=True)

    waiting = alice.get(f"{URL}{dag.pk}/nodes/?state=waiting").json()["results"]

    assert [node["name"] for node in waiting] == ["A2", "A3"]


def test_events_tell_what_happened_to_the_dag_and_its_nodes(
    alice: APIClient, people: SimpleNamespace
) -> None:
    dag = factories.finish(factories.running_dag(people.alice, node_count=1))

    own = alice.get(f"{URL}{dag.pk}/events/").json()["results"]
    of_nodes = alice.get(f"{URL}{dag.pk}/node-events/").json()["results"]

    assert [event["event"] for event in own] == ["complete", "match", "submit"]
    assert own[-1]["actor"] == "alice"
    assert [(event["node"], event["event"]) for event in of_nodes] == [
        ("A1", "succeed"),
        ("A1", "submit"),
        ("A1", "make ready"),
    ]


def test_files_are_listed_and_downloaded(alice: APIClient, people: SimpleNamespace) -> None:
    dag = factories.finish(factories.running_dag(people.alice, node_count=1))

    files = alice.get(f"{URL}{dag.pk}/files/").json()["results"]
    made = next(file for file in files if file["path"] == "out.A1.txt")
    answer = alice.get(f"{URL}{dag.pk}/files/out.A1.txt")
    content = b"".join(answer.streaming_content)

    assert content == b"made by A1\n"
    assert made["sha256"] == hashlib.sha256(content).hexdigest() == answer["X-Content-SHA256"]
    assert made["size_bytes"] == len(content)
    assert made["job"] is not None
    assert answer["Content-Disposition"] == 'attachment; filename="out.A1.txt"'
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ["missing", "../secret", "%2e%2e/x", "a%00b", "x" * 3000])
def test_a_file_that_is_not_there_is_not_found(
    alice: APIClient, people: SimpleNamespace, path: str
) -> None:
    dag = factories.dag(people.alice)

    assert alice.get(f"{URL}{dag.pk}/files/{path}").status_code == 404


def test_the_owner_holds_releases_and_removes(alice: APIClient, people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice)
    states = []

    for verb in ("hold", "release", "remove"):
        answer = alice.post(f"{URL}{dag.pk}/{verb}/", {"reason": f"to {verb}"}, format="json")
        assert answer.status_code == 200, answer.content
        states.append(answer.json()["state"])

    assert states == ["held", "running", "removed"]
    actions = AuditEntry.objects.filter(target=f"DAG {dag.pk}").order_by("pk")
    assert [(entry.action, entry.reason) for entry in actions][1:] == [
        ("hold DAG", "to hold"),
        ("release DAG", "to release"),
        ("remove DAG", "to remove"),
    ]


@pytest.mark.parametrize("verb", ["hold", "remove"])
@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": "  "}])
def test_a_change_without_a_reason_is_refused(
    alice: APIClient, people: SimpleNamespace, verb: str, body: dict[str, str]
) -> None:
    dag = factories.dag(people.alice)

    answer = alice.post(f"{URL}{dag.pk}/{verb}/", body, format="json")

    assert answer.status_code == 400
    assert "reason" in answer.json()["detail"]
    dag.refresh_from_db()
    assert dag.state == "idle"


@pytest.mark.parametrize("body", ["", "[]", "{", '{"reason": ["a"]}', "null"])
def test_a_body_that_is_no_reason_is_refused(
    alice: APIClient, people: SimpleNamespace, body: str
) -> None:
    dag = factories.dag(people.alice)

    answer = alice.generic("POST", f"{URL}{dag.pk}/hold/", body, "application/json")

    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"


def test_a_change_that_the_state_forbids_is_a_conflict(
    alice: APIClient, people: SimpleNamespace
) -> None:
    dag = factories.dag(people.alice)

    answer = alice.post(f"{URL}{dag.pk}/release/", {}, format="json")

    assert answer.status_code == 409
    assert f"DAG {dag.pk} is idle" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("name", "status"),
    [("vera", 403), ("bob", 403), ("sam", 200), ("olga", 200), ("ada", 200)],
)
def test_only_shifters_and_above_steer_what_is_not_theirs(
    people: SimpleNamespace, as_user: AsUser, name: str, status: int
) -> None:
    dag = factories.dag(people.alice)

    client = as_user(getattr(people, name))
    answer = client.post(f"{URL}{dag.pk}/hold/", {"reason": "look"}, format="json")

    assert answer.status_code == status
    if status == 403:
        assert "shifter" in answer.json()["detail"]


def test_a_dag_is_not_changed_by_reading_methods(alice: APIClient, people: SimpleNamespace) -> None:
    dag = factories.dag(people.alice)

    assert alice.get(f"{URL}{dag.pk}/hold/").status_code == 405
    assert alice.delete(f"{URL}{dag.pk}/").status_code == 405

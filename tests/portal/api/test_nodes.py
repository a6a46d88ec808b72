"""Nodes: read, run again, marked, changed; their scripts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests import factories
from wms.core.models import AuditEntry
from wms.dags.models import Dag, Node, ScriptRun
from wms.jobs.content.blobs import store_bytes

URL = "/api/v1/dags/"


@pytest.fixture(scope="module")
def people(module_rows: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture(scope="module")
def dag_of_all(people: SimpleNamespace) -> Dag:
    """A running DAG, A1 before A2 before A3."""
    return factories.running_dag(people.alice, node_count=3, is_chain=True)


@pytest.fixture
def dag(dag_of_all: Dag, db: None) -> Dag:
    return Dag.objects.get(pk=dag_of_all.pk)


def _node(dag: Dag, name: str) -> Node:
    return dag.nodes.get(name=name)


def _detail(client: APIClient, dag: Dag, name: str) -> dict[str, Any]:
    told: dict[str, Any] = client.get(f"{URL}{dag.pk}/nodes/{_node(dag, name).pk}/").json()
    return told


def _post(client: APIClient, dag: Dag, verb: str, body: dict[str, Any]) -> Any:
    return client.post(f"{URL}{dag.pk}/nodes/{verb}/", body, format="json")


def _states(dag: Dag) -> dict[str, str]:
    return dict(dag.nodes.values_list("name", "state"))


def test_a_node_tells_what_it_waits_for(alice: APIClient, dag: Dag) -> None:
    [wait] = _detail(alice, dag, "A2")["waits_for"]
    [runs] = _detail(alice, dag, "A1")["waits_for"]

    assert (wait["kind"], [other["name"] for other in wait["nodes"]]) == ("parents", ["A1"])
    assert (runs["kind"], runs["message"]) == ("jobs", "1 job waiting")
    assert runs["job"] == _node(dag, "A1").job_id


def test_a_node_that_cannot_run_names_those_that_failed(alice: APIClient, dag: Dag) -> None:
    factories.run_job(factories.pilot(dag.site.queues.get()), exit_code=1)
    factories.turn()

    [wait] = _detail(alice, dag, "A3")["waits_for"]

    assert (wait["kind"], [other["name"] for other in wait["nodes"]]) == ("failed parents", ["A1"])


@pytest.mark.slow
def test_a_skipped_node_tells_which_condition_ruled_it_out(
    alice: APIClient, people: SimpleNamespace, dag: Dag
) -> None:
    commands = "PARENT A1 CHILD A2 WHEN (ExitCode == 1)\nPARENT A1 CHILD A3 WHEN (ExitCode == 0)\n"
    branches = factories.running_dag(people.alice, node_count=3, commands=commands)
    for _ in range(2):
        factories.run_job(factories.pilot(branches.site.queues.get()), exit_code=1)
    factories.turn()

    told = _detail(alice, branches, "A3")

    assert (told["state"], told["state_cause"]) == ("skipped", "condition")
    assert told["join"] == {
        "needed_count": 1, "arc_count": 1, "held_count": 0, "ruled_out_count": 1, "lost_count": 0,
    }  # fmt: skip
    [condition] = told["conditions"]
    assert (condition["parent"], condition["holds"]) == ("A1", False)
    assert [each["kind"] for each in told["waits_for"]] == ["skipped"]
    assert alice.get(f"{URL}{branches.pk}/").json()["nodes"]["skipped"] == 1
    assert _detail(alice, dag, "A2")["join"] is None


def test_a_node_of_another_dag_is_not_found(alice: APIClient, dag: Dag) -> None:
    other = factories.dag(dag.owner, name="other.dag")

    answer = alice.get(f"{URL}{other.pk}/nodes/{_node(dag, 'A1').pk}/")

    assert answer.status_code == 404


def test_the_jobs_of_all_attempts_are_listed(alice: APIClient, dag: Dag) -> None:
    node = _node(dag, "A1")
    factories.run_job(factories.pilot(dag.site.queues.get()), exit_code=1)
    factories.turn()
    _post(alice, dag, "rerun", {"reason": "again", "nodes": ["A1"]})
    factories.turn()

    jobs = alice.get(f"{URL}{dag.pk}/nodes/{node.pk}/jobs/").json()["results"]
    events = alice.get(f"{URL}{dag.pk}/nodes/{node.pk}/events/").json()["results"]

    assert [job["state"] for job in jobs] == ["waiting", "failed"]
    assert [event["event"] for event in events][:3] == ["submit", "make ready", "rerun"]


@pytest.mark.slow
def test_nodes_run_again_with_what_depends_on_them(alice: APIClient, dag: Dag) -> None:
    factories.finish(dag)

    answer = _post(alice, dag, "rerun", {"reason": "wrong input", "nodes": ["A2"]})

    assert answer.json() == {"changed": 2, "skipped": 0, "state": "idle"}
    assert _states(dag) == {"A1": "done", "A2": "ready", "A3": "waiting"} or _states(dag) == {
        "A1": "done",
        "A2": "waiting",
        "A3": "waiting",
    }
    assert AuditEntry.objects.filter(action="rerun node", reason="wrong input").count() == 1


def test_nodes_are_marked_and_what_waits_for_them_goes_on(alice: APIClient, dag: Dag) -> None:
    answer = _post(alice, dag, "mark", {"reason": "by hand", "nodes": ["A2"], "as_done": True})

    assert answer.status_code == 200, answer.content
    assert _states(dag)["A2"] == "done"


def test_nodes_are_changed_before_they_are_submitted(alice: APIClient, dag: Dag) -> None:
    body = {"reason": "more", "nodes": ["A2", "A3"], "variables": {"x": " 1"}, "priority": 7}

    answer = _post(alice, dag, "change", {**body, "max_retries": 4})

    assert answer.json()["changed"] == 2, answer.content
    told = _detail(alice, dag, "A3")
    assert told["variables"] == {"number": "3", "x": " 1"}
    assert (told["priority"], told["max_retries"]) == (7, 4)


@pytest.mark.parametrize(
    ("verb", "body", "words"),
    [
        ("rerun", {"nodes": ["A1"]}, "has not ended"),
        ("rerun", {"nodes": []}, "nodes"),
        ("rerun", {"nodes": ["Z"]}, "no node Z"),
        ("mark", {"nodes": ["A1"], "as_done": True}, "cannot be marked|can be marked"),
        ("mark", {"nodes": ["A2"]}, "as_done"),
        ("change", {"nodes": ["A1"], "priority": 1}, "has been submitted"),
        ("change", {"nodes": ["A2"], "variables": {"queue_x": "1"}}, "queue_x"),
        ("change", {"nodes": ["A2"], "variables": []}, "variables"),
    ],
)
def test_what_cannot_be_done_with_a_node_is_refused_with_why(
    alice: APIClient, dag: Dag, verb: str, body: dict[str, Any], words: str
) -> None:
    before = _states(dag)

    answer = _post(alice, dag, verb, {"reason": "x", **body})

    assert answer.status_code == 400
    assert any(word in answer.json()["detail"] for word in words.split("|"))
    assert _states(dag) == before


def test_a_change_of_nodes_needs_a_reason(alice: APIClient, dag: Dag) -> None:
    answer = _post(alice, dag, "mark", {"nodes": ["A2"], "as_done": True, "reason": " "})

    assert answer.status_code == 400
    assert "reason" in answer.json()["detail"]


def test_nodes_are_narrowed_by_kind_and_category(alice: APIClient, dag: Dag) -> None:
    dag.nodes.filter(name="A2").update(category="big")
    dag.nodes.filter(name="A3").update(kind="data")

    def names(query: str) -> list[str]:
        found = alice.get(f"{URL}{dag.pk}/nodes/{query}").json()["results"]
        return [node["name"] for node in found]

    assert names("?category=big") == ["A2"]
    assert names("?kind=data") == ["A3"]
    assert names("?kind=job&kind=data") == ["A1", "A2", "A3"]


def test_runs_of_scripts_are_listed_with_what_they_printed(alice: APIClient, dag: Dag) -> None:
    node = _node(dag, "A1")
    run = ScriptRun.objects.create(
        dag=dag, node=node, kind="post", retry_number=0, executable="judge.sh", state="ended",
        exit_code=2, failure="", output=store_bytes(b"bad\n"),
    )  # fmt: skip
    ScriptRun.objects.create(
        dag=dag, node=_node(dag, "A2"), kind="pre", retry_number=0, executable="x"
    )
    address = f"{URL}{dag.pk}/scripts/"

    [told] = alice.get(f"{address}?node={node.pk}&state=ended").json()["results"]
    output = alice.get(f"{address}{run.pk}/output")

    assert (told["node_name"], told["exit_code"], told["output_bytes"]) == ("A1", 2, 4)
    assert b"".join(output.streaming_content) == b"bad\n"
    assert len(alice.get(address).json()["results"]) == 2


def test_a_run_that_printed_nothing_has_no_output(alice: APIClient, dag: Dag) -> None:
    run = ScriptRun.objects.create(
        dag=dag, node=_node(dag, "A1"), kind="pre", retry_number=0, executable="x"
    )

    assert alice.get(f"{URL}{dag.pk}/scripts/{run.pk}/output").status_code == 404

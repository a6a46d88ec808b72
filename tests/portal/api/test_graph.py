"""The graph of a DAG as numbers, and what changed of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from rest_framework.test import APIClient

from tests import factories
from wms.dags.models import Dag

URL = "/api/v1/dags/"


@pytest.fixture
def dag(people: SimpleNamespace) -> Dag:
    """A running DAG, A1 before A2 before A3."""
    return factories.running_dag(people.alice, node_count=3, is_chain=True)


def test_a_graph_is_told_in_columns(alice: APIClient, dag: Dag) -> None:
    told = alice.get(f"{URL}{dag.pk}/graph/").json()

    assert told["ids"] == list(dag.nodes.order_by("pk").values_list("pk", flat=True))
    assert (told["levels"], told["places"]) == ([0, 1, 2], [0, 0, 0])
    assert (told["parents"], told["children"]) == ([0, 1], [1, 2])
    assert [told["states"][code] for code in told["codes"]] == ["submitted", "waiting", "waiting"]


def test_conditions_joins_and_gates_are_told_beside_the_columns(
    alice: APIClient, people: SimpleNamespace
) -> None:
    dag = factories.deciding_dag(people.alice)

    told = alice.get(f"{URL}{dag.pk}/graph/").json()

    names = list(dag.nodes.order_by("pk").values_list("name", flat=True))
    number = {name: at for at, name in enumerate(names)}
    states = {name: told["states"][told["codes"][at]] for name, at in number.items()}
    assert (states["B"], states["C"], states["g"]) == ("submitted", "skipped", "ready")
    assert told["kinds"] == {str(number["g"]): "gate"}
    assert told["joins"] == [
        {"node": number["M"], "needed": 1, "arcs": 3, "held": 0, "ruled_out": 1, "lost": 0}
    ]
    first, second = told["conditions"]
    assert (first["parent"], first["child"]) == (number["A1"], number["B"])
    assert (first["expression"], first["holds"]) == ("(ExitCode == 0)", True)
    assert (second["child"], second["holds"]) == (number["C"], False)
    assert second["reason"] == "(ExitCode > 0) is false, with ExitCode = 0"


def test_only_what_changed_since_a_version_is_told(alice: APIClient, dag: Dag) -> None:
    told = alice.get(f"{URL}{dag.pk}/graph/").json()
    factories.run_job(factories.pilot(dag.site.queues.get()))
    factories.turn()

    later = alice.get(f"{URL}{dag.pk}/graph/changes/", {"since": told["version"]}).json()

    changed = {int(node): told["states"][code] for node, code in later["changed"].items()}
    assert changed == {0: "done", 1: "submitted"}


def test_without_a_version_the_changes_are_refused(alice: APIClient, dag: Dag) -> None:
    answer = alice.get(f"{URL}{dag.pk}/graph/changes/")

    assert answer.status_code == 400
    assert "since" in str(answer.json())

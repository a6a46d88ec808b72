"""Obstacles of a node, for every state in which it may be."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from tests import factories
from wms.core.actors import Actor
from wms.dags.models import Dag, Node, NodeWork, ScriptRun
from wms.dags.reading.obstacles import Obstacle, obstacles_of, room_now
from wms.dags.services.dags import change_limits, halt_dags, hold_dags


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


def _obstacles(dag: Dag, name: str, **changes: Any) -> list[Obstacle]:
    if changes:
        dag.nodes.filter(name=name).update(**changes)
    dag.refresh_from_db()
    node = Node.objects.select_related("dag").get(dag=dag, name=name)
    return obstacles_of(node, now=timezone.now())


def _limited(people: SimpleNamespace, options: Mapping[str, int], **categories: int) -> Dag:
    """A DAG of three nodes that began under these limits."""
    factories.site()
    dag = factories.dag(people.alice, node_count=3)
    actor = Actor.person(people.alice)
    dag.nodes.filter(name="A2").update(category="heavy")
    change_limits(dag.pk, actor=actor, reason="x", options=options, categories=categories)
    factories.turn()
    return dag


def test_a_dag_without_a_site_says_so_first(people: SimpleNamespace) -> None:
    factories.site(max_matches=0)
    dag = factories.dag(people.alice, node_count=2, is_chain=True)
    factories.turn()

    obstacles = _obstacles(dag, "A2")

    assert [each.kind for each in obstacles] == ["site", "parents"]
    assert "MaxMatches" in obstacles[0].message


@pytest.mark.parametrize("steer", [hold_dags, halt_dags])
def test_a_dag_that_stands_still_is_told_with_its_reason(
    people: SimpleNamespace, steer: Any
) -> None:
    dag = factories.running_dag(people.alice, node_count=2, is_chain=True)
    steer([dag.pk], actor=Actor.person(people.alice), reason="disk full")

    first = _obstacles(dag, "A2")[0]

    assert first.kind == "dag"
    assert "disk full" in first.message


def test_the_limit_that_is_full_is_named(people: SimpleNamespace) -> None:
    dag = _limited(people, {"max_jobs": 1})

    [obstacle] = _obstacles(dag, "A3")
    assert obstacle.kind == "limit"
    assert "1" in obstacle.message


def test_a_full_category_keeps_only_its_own_nodes_back(people: SimpleNamespace) -> None:
    dag = _limited(people, {}, heavy=0)

    [obstacle] = _obstacles(dag, "A2")

    assert obstacle.kind == "category"
    assert "0 of category heavy" in obstacle.message
    assert [each.kind for each in _obstacles(dag, "A3")] == ["jobs"]


def test_room_matters_only_while_ready_nodes_wait(people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice)

    assert room_now(dag) is None


@pytest.mark.parametrize(
    ("run", "kind", "fact"),
    [
        ({}, "script slot", "20"),
        ({"state": "granted"}, "script", "service"),
        ({"state": "running"}, "script", "PRE script runs"),
        ({"due_at": timezone.now() + timedelta(hours=1)}, "script", "not yet"),
        (None, "script", "engine"),
    ],
)
def test_a_script_is_told_with_what_it_waits_for(
    people: SimpleNamespace, run: dict[str, Any] | None, kind: str, fact: str
) -> None:
    dag = factories.running_dag(people.alice)
    node = dag.nodes.get(name="A1")
    if run is not None:
        ScriptRun.objects.create(
            dag=dag, node=node, kind="pre", retry_number=0, executable="x.sh", **run
        )

    [obstacle] = _obstacles(dag, "A1", state="pre_running")

    assert obstacle.kind == kind
    assert fact in obstacle.message


@pytest.mark.parametrize("state", ["done", "failed"])
def test_what_has_ended_waits_for_nothing(people: SimpleNamespace, state: str) -> None:
    assert _obstacles(factories.running_dag(people.alice), "A1", state=state) == []


@pytest.mark.parametrize(
    ("work", "kind", "field"),
    [
        ({"inner_dag_id": 4711}, "inner dag", "dag"),
        ({"request_id": 4711}, "request", "request"),
    ],
)
def test_what_else_a_node_runs_is_named(
    people: SimpleNamespace, work: dict[str, int], kind: str, field: str
) -> None:
    dag = factories.running_dag(people.alice)
    NodeWork.objects.create(node=dag.nodes.get(name="A1"), **work)

    [obstacle] = _obstacles(dag, "A1")

    assert (obstacle.kind, getattr(obstacle, field)) == (kind, 4711)
    assert "gone" in obstacle.message

"""Repeated nodes with the engine and the services: many at once, run again, marked, told of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from portal.shared.drawings import drawing_of, states_of
from tests.wms.dags.driving import (
    NOW,
    advance,
    assert_log_agrees,
    claim_of,
    end,
    match,
    run_all,
    run_one,
    states,
)
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.engine import cycle as engine
from wms.dags.exports.catalogue import EXPORTS, export
from wms.dags.models import Dag, DagEvent, Edge, Growth, Node
from wms.dags.services.nodes import mark_nodes, rerun_nodes
from wms.dags.states import NodeCause

LOOP = """\
JOB A step.sub
JOB B step.sub
PARENT A CHILD B
REPEAT A WHILE (Pass < 3) MAX 9
"""
pytestmark = pytest.mark.django_db


class _Killed(Exception):
    """The engine is killed before it commits."""


@transaction.atomic
def _advance_and_kill(dag: Dag) -> None:
    engine.run_cycle(NOW)
    assert Node.objects.filter(dag=dag).count() == 3
    raise _Killed


@pytest.fixture(autouse=True)
def _site(make_site: Callable[..., object]) -> None:
    make_site("site-a", max_matches=9)


@pytest.fixture
def why(alice: User) -> dict[str, Any]:
    return {"actor": Actor.person(alice), "reason": "seen by eye"}


@pytest.mark.slow
def test_a_loop_is_told_of_and_runs_again_with_the_passes_that_there_are(
    submit: Callable[..., Dag], why: dict[str, Any]
) -> None:
    dag = run_all(match(submit(LOOP)))

    assert states(dag) == {"A": "done", "B": "done", "A#2": "done", "A#3": "done"}
    assert (dag.state, dag.node_count, dag.done_count) == ("completed", 4, 4)
    told = DagEvent.objects.filter(dag=dag, event="grow").order_by("pk")
    assert [(each.facts["node"], each.facts["nodes"]) for each in told] == [
        ("A", ["A#2"]),
        ("A#2", ["A#3"]),
    ]
    assert told[0].reason == "(Pass < 3) is true, with Pass = 1"
    texts = {kind: "".join(export(dag, kind, now=NOW)) for kind in EXPORTS}
    assert all("A#3" in texts[kind] for kind in ("status", "jobstate", "dot"))
    assert_log_agrees(dag)

    rerun_nodes(dag.pk, ["A"], **why)
    assert set(states(dag).values()) == {"waiting"}
    dag.refresh_from_db()
    run_all(match(dag))
    assert states(dag) == {"A": "done", "B": "done", "A#2": "done", "A#3": "done"}
    assert Growth.objects.filter(dag=dag).count() == 2
    assert_log_agrees(dag)


@pytest.mark.slow
def test_the_drawing_follows_the_passes(submit: Callable[..., Dag]) -> None:
    dag = match(submit(LOOP))
    before = drawing_of(dag).node_count, len(states_of(dag).codes)
    run_one("A")
    advance(dag)
    drawing = drawing_of(dag)

    assert before == (2, 2)
    assert (drawing.node_count, len(states_of(dag).codes)) == (3, 3)
    assert drawing.arc_count == 2


def test_a_kill_in_the_round_that_grows_loses_and_doubles_nothing(
    submit: Callable[..., Dag],
) -> None:
    dag = match(submit(LOOP))
    run_one("A")
    with pytest.raises(_Killed):
        _advance_and_kill(dag)

    assert states(dag) == {"A": "submitted", "B": "waiting"}
    advance(dag)
    advance(dag)
    assert states(dag) == {"A": "done", "B": "waiting", "A#2": "submitted"}
    arcs = Edge.objects.filter(parent__dag=dag).values_list("parent__name", "child__name")
    assert sorted(arcs) == [("A", "A#2"), ("A#2", "B")]
    assert_log_agrees(dag)


def test_a_pass_that_is_marked_as_done_by_hand_ends_the_loop(
    submit: Callable[..., Dag], why: dict[str, Any]
) -> None:
    dag = submit(LOOP)
    mark_nodes(dag.pk, ["A"], as_done=True, **why)
    run_all(match(dag))

    assert states(dag) == {"A": "done", "B": "done"}
    assert_log_agrees(dag)


def test_a_pass_without_room_fails_and_changes_nothing_else(
    submit: Callable[..., Dag], settings: Any
) -> None:
    dag = match(submit(LOOP))
    run_one("A")
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_DAG_NODES": 2}
    advance(dag)

    node = Node.objects.get(dag=dag, name="A")
    assert (node.state, node.state_cause) == ("failed", NodeCause.GROWTH)
    assert node.state_reason.startswith("a DAG has at most 2 nodes")
    assert states(dag) == {"A": "failed", "B": "futile"}
    assert_log_agrees(dag)


@pytest.mark.slow
def test_many_passes_at_once_take_as_many_statements_as_few(submit: Callable[..., Dag]) -> None:
    taken = []
    for number in (2, 12):
        names = [f"N{number}x{at}" for at in range(number)]
        lines = [f"JOB {name} step.sub\nREPEAT {name} WHILE (Pass < 2) MAX 2\n" for name in names]
        dag = match(submit("".join(lines)))
        for name in names:
            end(claim_of(name))
        with CaptureQueriesContext(
            connection,
        ) as queries:
            engine.run_cycle(NOW)
        taken.append(len(queries))
        assert Node.objects.filter(dag=dag).count() == 2 * number
        run_all(dag)

    # Of each, its outcome is read from a file of its own.
    assert taken[1] - taken[0] <= 10 * 2 + 2

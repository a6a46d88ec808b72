"""Nodes that decide, with the engine and the services: steered by hand, shared, explained."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from tests.wms.dags.driving import (
    NOW,
    advance,
    assert_log_agrees,
    claim_one,
    end,
    match,
    run_all,
    run_one,
    states,
)
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.models import User
from wms.dags.engine.shared_rounds import Together, advance_together
from wms.dags.exports.catalogue import EXPORTS, export
from wms.dags.exports.dot import lines as dot_lines
from wms.dags.follow.runs import FollowRequest, follow_run
from wms.dags.models import Condition, Dag, Join, Node
from wms.dags.reading.node_selectors import parents_and_children
from wms.dags.reading.obstacles import obstacles_of
from wms.dags.services.nodes import mark_nodes, rerun_nodes
from wms.dags.states import NodeCause
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import WorkspaceFile

BRANCHES = """\
JOB A step.sub
JOB B step.sub
JOB C step.sub
JOB D step.sub
PARENT A CHILD B WHEN (ExitCode == 0 && Yield > 0.5)
PARENT A CHILD C WHEN (ExitCode != 0 || Yield =?= undefined)
PARENT B C CHILD D
JOIN D ANY
"""
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _site(make_site: Callable[..., object]) -> None:
    make_site("site-a", max_matches=9)


@pytest.fixture
def why(alice: User) -> dict[str, Any]:
    return {"actor": Actor.person(alice), "reason": "seen by eye"}


def _return(dag: Dag, name: str, text: str) -> None:
    blob = store_bytes(text.encode())
    WorkspaceFile.objects.update_or_create(
        workspace=dag.workspace, path=f"{name}.outcome", defaults={"blob": blob}
    )


@pytest.mark.slow
def test_a_branch_is_taken_told_of_and_taken_anew_when_the_decision_is_changed(
    submit: Callable[..., Dag], why: dict[str, Any]
) -> None:
    dag = match(submit(BRANCHES))
    by_name = {node.name: node for node in Node.objects.filter(dag=dag).select_related("dag")}
    run_one("A", exit_code=1)
    advance(dag)

    assert states(dag) == {"A": "failed", "B": "skipped", "C": "submitted", "D": "waiting"}
    skipped = Node.objects.select_related("dag").get(dag=dag, name="B")
    assert skipped.state_cause == NodeCause.CONDITION
    [obstacle] = obstacles_of(skipped, now=NOW)
    assert (obstacle.kind, [node.name for node in obstacle.nodes]) == ("skipped", ["A"])
    waiting = Node.objects.select_related("dag").get(dag=dag, name="D")
    [obstacle] = obstacles_of(waiting, now=NOW)
    assert (obstacle.kind, [node.name for node in obstacle.nodes]) == ("join", ["C"])
    parents, _ = parents_and_children(skipped)
    condition = parents.conditions[by_name["A"].pk]
    assert condition.holds is False
    assert "ExitCode = 1" in condition.reason
    [arc] = [line for line in dot_lines(dag, NOW) if '"A" -> "B"' in line]
    assert "style=dotted" in arc
    assert 'label="(ExitCode == 0 &&' in arc
    assert_log_agrees(dag)

    # Somebody repairs A by hand and says what it gave: nothing, so C stays the branch.
    mark_nodes(dag.pk, ["A"], as_done=True, **why)
    assert_log_agrees(dag)
    run_all(advance(dag))
    assert states(dag) == {"A": "done", "B": "skipped", "C": "done", "D": "done"}
    assert (dag.state, dag.skipped_count, dag.exit_code) == ("completed", 1, 0)
    texts = {kind: "".join(export(dag, kind, now=NOW)) for kind in EXPORTS}
    assert "NodesFutile = 1;" in texts["status"]
    assert "B " not in texts["jobstate"]

    # Run again, it returns what the other branch needs.
    rerun_nodes(dag.pk, ["A"], **why)
    assert set(states(dag).values()) == {"waiting"}
    assert Condition.objects.filter(holds=None).count() == 2
    assert_log_agrees(dag)
    _return(dag, "A", "Yield = 0.75\n")
    dag.refresh_from_db()
    run_all(match(dag))
    assert states(dag) == {"A": "done", "B": "done", "C": "skipped", "D": "done"}
    assert dag.state == "completed"
    assert_log_agrees(dag)

    # Only the branch itself: it is decided as before, and what began goes on counting.
    rerun_nodes(dag.pk, ["C"], with_descendants=False, **why)
    run_all(match(dag))
    assert states(dag) == {"A": "done", "B": "done", "C": "skipped", "D": "done"}
    assert_log_agrees(dag)


def test_plain_nodes_above_a_join_end_in_shared_rounds(submit: Callable[..., Dag]) -> None:
    text = "".join(f"JOB {name} step.sub\n" for name in "ABCE")
    dag = submit(f"{text}PARENT A B CHILD C\nJOIN C 1\nPARENT C CHILD E\n")
    plain = submit("JOB A step.sub\n")
    match(dag)
    while (attempt := claim_one()) is not None:
        if attempt.job.name != "B":
            end(attempt)

    assert advance_together([dag.pk, plain.pk], now=NOW) == Together(frozenset({dag.pk, plain.pk}))

    assert states(dag) == {"A": "done", "B": "submitted", "C": "submitted", "E": "waiting"}
    assert Join.objects.filter(node__dag=dag).count() == 2
    assert Node.objects.filter(dag=dag, is_plain=True).count() == 4
    assert_log_agrees(dag)


def test_a_dag_with_conditions_is_not_followed(alice: User) -> None:
    request = FollowRequest(("case.dag",), {"case.dag": io.BytesIO(BRANCHES.encode())}, "case.log")

    with pytest.raises(InvalidInput) as raised:
        follow_run(request, owner=alice, actor=Actor.person(alice), now=NOW)

    assert [(each.line, each.command) for each in raised.value.findings] == [
        (5, "PARENT"),
        (6, "PARENT"),
        (8, "JOIN"),
    ]

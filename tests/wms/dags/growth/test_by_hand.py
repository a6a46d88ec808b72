"""Fragments that people and programs add to a DAG: where they stand, what is refused, the audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.wms.dags.driving import (
    advance,
    assert_log_agrees,
    match,
    run_all,
    run_one,
    states,
)
from wms.accounting.models import Quota
from wms.accounting.services import save_quota
from wms.core.actors import Actor
from wms.core.errors import (
    Conflict,
    InvalidInput,
    NotPermitted,
    QuotaExceeded,
    ReasonRequired,
)
from wms.core.models import AuditEntry, User
from wms.dags.models import Dag, DagEvent, Edge, Growth, Node
from wms.dags.services.dags import hold_dags, release_dags, remove_dags, rescue_dag
from wms.dags.services.growth import GrowthRequest, check_growth, grow_dag
from wms.dags.services.nodes import mark_nodes, rerun_nodes
from wms.jobs.models import WorkspaceFile

CHAIN = "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\n"
MORE = "JOB X step.sub\nJOB Y step.sub\nPARENT X CHILD Y\n"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _site(make_site: Callable[..., object]) -> None:
    make_site("site-a", max_matches=9)


@pytest.fixture
def why(alice: User) -> dict[str, Any]:
    return {"actor": Actor.person(alice), "reason": "more data came"}


def grow(dag: Dag, text: str, why: dict[str, Any], **around: Any) -> Dag:
    grow_dag(dag.pk, GrowthRequest(text, **around), **why)
    dag.refresh_from_db()
    return dag


def untouched(dag: Dag, nodes: int = 2) -> bool:
    return (
        Node.objects.filter(dag=dag).count() == nodes
        and not Growth.objects.filter(dag=dag).exists()
        and not WorkspaceFile.objects.filter(path__contains=".grown").exists()
        and not AuditEntry.objects.filter(action="grow DAG").exists()
    )


def refusal(dag: Dag, text: str, why: dict[str, Any], **around: Any) -> list[Any]:
    with pytest.raises(InvalidInput) as raised:
        grow_dag(dag.pk, GrowthRequest(text, **around), **why)
    assert untouched(dag)
    return [(each.message, each.file or each.field, each.line) for each in raised.value.findings]


def test_a_fragment_between_nodes_is_waited_for_and_audited(
    submit: Callable[..., Dag], why: dict[str, Any]
) -> None:
    dag = grow(match(submit(CHAIN)), MORE, why, after=["A"], before=["B"])

    assert states(dag) == {"A": "submitted", "B": "waiting", "X": "waiting", "Y": "waiting"}
    arcs = Edge.objects.filter(parent__dag=dag).values_list("parent__name", "child__name")
    assert sorted(arcs) == [("A", "B"), ("A", "X"), ("X", "Y"), ("Y", "B")]
    assert Node.objects.get(dag=dag, name="B").unfinished_parents == 2
    assert dag.node_count == 4
    event = DagEvent.objects.get(dag=dag, event="grow")
    assert (event.actor, event.reason) == ("alice", "more data came")
    assert (event.from_state, event.to_state) == ("running", "running")
    entry = AuditEntry.objects.get(action="grow DAG")
    assert (entry.target, entry.facts["nodes"]) == (f"DAG {dag.pk}", ["X", "Y"])
    assert_log_agrees(dag)

    run_one("A")
    advance(dag)
    assert states(dag) == {"A": "done", "B": "waiting", "X": "submitted", "Y": "waiting"}
    assert run_all(dag).state == "completed"
    assert_log_agrees(dag)


def test_a_fragment_without_a_place_begins_at_once_and_is_waited_for_by_nobody(
    submit: Callable[..., Dag], why: dict[str, Any]
) -> None:
    dag = grow(match(submit(CHAIN)), "JOB X step.sub\n", why)
    advance(dag)

    assert states(dag) == {"A": "submitted", "B": "waiting", "X": "submitted"}
    run_one("A")
    advance(dag)
    assert states(dag)["B"] == "submitted"
    assert_log_agrees(dag)


def test_a_fragment_after_a_node_that_is_done_does_not_wait_for_it(
    submit: Callable[..., Dag], why: dict[str, Any]
) -> None:
    dag = match(submit(CHAIN))
    run_one("A")
    grow(advance(dag), "JOB X step.sub\n", why, after=["A", "B"])

    assert Node.objects.get(dag=dag, name="X").unfinished_parents == 1
    assert_log_agrees(dag)
    assert run_all(dag).state == "completed"


@pytest.mark.slow
def test_a_dag_without_a_site_or_held_grows_and_goes_on_later(
    submit: Callable[..., Dag], why: dict[str, Any]
) -> None:
    dag = grow(submit(CHAIN), "JOB X step.sub\n", why, before=["A"])
    assert (dag.state, len(dag.need_nodes)) == ("idle", 1)
    match(dag)
    assert states(dag) == {"A": "waiting", "B": "waiting", "X": "submitted"}
    hold_dags([dag.pk], **why)
    grow(dag, "JOB Y step.sub\nGATE g DEADLINE 1s THEN OPEN\n", why, file="y.dag", after=["X"])
    assert dag.state == "held"
    release_dags([dag.pk], actor=why["actor"])

    run_all(dag)
    assert {states(dag)[name] for name in "ABXY"} == {"done"}
    assert_log_agrees(dag)


@pytest.mark.slow
def test_a_fragment_behind_and_before_nodes_that_may_be_skipped_may_be_skipped(
    submit: Callable[..., Dag], why: dict[str, Any]
) -> None:
    text = (
        "JOB P step.sub\nJOB A step.sub\nJOB B step.sub\nJOB C step.sub\nPARENT A CHILD B\n"
        "PARENT P CHILD A WHEN (ExitCode == 3)\nPARENT B C CHILD P\n"
    )
    text = text.replace("PARENT B C CHILD P\n", "PARENT C CHILD B\nJOIN B 2\n")
    dag = match(submit(text))
    grow(dag, MORE, why, after=["A", "P"], before=["B"])
    assert_log_agrees(dag)
    run_all(dag)

    assert states(dag) == {
        "P": "done", "A": "skipped", "B": "skipped", "C": "done", "X": "skipped", "Y": "skipped",
    }  # fmt: skip
    assert_log_agrees(dag)


@pytest.mark.slow
def test_conditions_that_are_added_make_joins_of_what_is_below(
    submit: Callable[..., Dag], why: dict[str, Any]
) -> None:
    dag = match(submit(f"{CHAIN}JOB C step.sub\nPARENT B CHILD C\n"))
    decides = "JOB X step.sub\nJOB Y step.sub\nPARENT X CHILD Y WHEN (ExitCode == 1)\n"
    grow(dag, decides, why, before=["B"])
    assert dag.has_joins
    assert_log_agrees(dag)
    run_all(advance(dag))

    assert states(dag) == {
        "A": "done", "B": "skipped", "C": "skipped", "X": "done", "Y": "skipped",
    }  # fmt: skip
    assert dag.state == "completed"
    assert_log_agrees(dag)


@pytest.mark.slow
def test_a_rescue_and_a_rerun_have_the_nodes_that_were_added(
    submit: Callable[..., Dag], why: dict[str, Any]
) -> None:
    dag = grow(match(submit(CHAIN)), MORE, why, after=["A"], before=["B"])
    run_all(dag, {"Y": 1})
    assert states(dag) == {"A": "done", "B": "futile", "X": "done", "Y": "failed"}
    assert_log_agrees(dag)

    new = rescue_dag(dag.pk, **why)
    assert states(new) == {"A": "done", "B": "waiting", "X": "done", "Y": "waiting"}
    assert Node.objects.get(dag=new, name="B").unfinished_parents == 1
    assert_log_agrees(new)
    assert run_all(match(new)).state == "completed"
    rerun_nodes(new.pk, ["X"], **why)
    assert states(new) == {"A": "done", "B": "waiting", "X": "waiting", "Y": "waiting"}
    new.refresh_from_db()
    assert run_all(match(new)).state == "completed"
    assert_log_agrees(new)


CROWD = ["A", *(f"n{at}" for at in range(100))]
FAULTS: list[tuple[str, dict[str, Any], str, str, int | None]] = [
    ("JOB X\n", {}, "expected: JOB name description", "added.dag", 1),
    ("JOB A step.sub\n", {}, "the DAG has a node A already", "added.dag", 1),
    ("# none\n", {}, "the fragment has no nodes", "added.dag", None),
    ("JOB X no.sub\n", {"file": "n.dag"}, "no.sub of node X is missing", "n.dag", 1),
    (MORE, {"after": ["Q"]}, "the DAG has no node Q in its graph", "after", None),
    (MORE, {"before": ["A"]}, "only one that waits can wait", "before", None),
    (MORE, {"after": ["B"], "before": ["B"]}, "would wait for itself", "after", None),
    (MORE, {"after": CROWD}, "at most 100 nodes", "after", None),
    (MORE, {"file": "../x.dag"}, "leads outside of the workspace", "file", None),
    (MORE, {"file": "x" * 250}, "at most 255", "file", None),
    (f"{MORE}FINAL F step.sub\n", {}, "cannot have a FINAL node", "added.dag", 4),
    (f"{MORE}DONE X\n", {}, "X is new, and cannot be DONE", "added.dag", 1),
    (f"{MORE}PARENT Y CHILD X\n", {}, "the nodes form a cycle", "added.dag", 3),
    ("JOB X step.sub\nJOB Y\0 step.sub\n", {}, "contains a zero byte", "added.dag", 2),
    ("JOB X step.sub\n# \ud800\n", {}, "is no text in UTF-8", "text", None),
    ("#" * (1024 * 1024 + 1), {}, "at most 1048576 bytes", "text", None),
]


@pytest.mark.parametrize(("text", "around", "message", "where", "line"), FAULTS)
def test_a_fault_is_told_by_line_or_field_and_changes_nothing(
    submit: Callable[..., Dag],
    why: dict[str, Any],
    text: str,
    around: dict[str, Any],
    message: str,
    where: str,
    line: int | None,
) -> None:
    dag = match(submit(CHAIN))

    told = refusal(dag, text, why, **around)

    assert told[0][1:] == (where, line)
    assert message in told[0][0]


def test_a_check_changes_nothing(submit: Callable[..., Dag], why: dict[str, Any]) -> None:
    dag = match(submit(CHAIN))

    checked = check_growth(dag.pk, GrowthRequest(MORE, after=["A"]), actor=why["actor"])

    assert list(checked.spec.nodes) == ["X", "Y"]
    assert untouched(dag)
    dag.refresh_from_db()
    assert dag.node_count == 2


def test_a_node_behind_which_nothing_runs_is_refused(
    submit: Callable[..., Dag], why: dict[str, Any]
) -> None:
    dag = submit(CHAIN)
    mark_nodes(dag.pk, ["A"], as_done=False, **why)

    faults = refusal(dag, MORE, why, after=["A", "B"])

    assert [each[0] for each in faults] == [
        "node A is failed: nothing after it would run",
        "node B is futile: nothing after it would run",
    ]


def test_only_who_steers_a_dag_adds_to_it(
    submit: Callable[..., Dag], charlie: User, sam: User
) -> None:
    dag = submit(CHAIN)

    with pytest.raises(NotPermitted):
        grow_dag(dag.pk, GrowthRequest(MORE), actor=Actor.person(charlie), reason="mine")
    with pytest.raises(NotPermitted):
        check_growth(dag.pk, GrowthRequest(MORE), actor=Actor.person(charlie))
    assert untouched(dag)
    grow(dag, MORE, {"actor": Actor.person(sam), "reason": "for alice"})
    assert dag.node_count == 4


@pytest.mark.slow
def test_what_has_ended_or_is_beyond_limits_does_not_grow(
    submit: Callable[..., Dag], why: dict[str, Any], settings: Any
) -> None:
    dag = match(submit(CHAIN))
    with pytest.raises(ReasonRequired):
        grow_dag(dag.pk, GrowthRequest(MORE), actor=why["actor"], reason=" ")
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_DAG_NODES": 3}
    assert "at most 3 nodes" in refusal(dag, MORE, why)[0][0]
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_DAG_NODES": 2_000_000, "MAX_DAG_ARCS": 1}
    assert "at most 1 arcs" in refusal(dag, MORE, why, before=["B"])[0][0]
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_DAG_ARCS": 5_000_000}
    save_quota(Quota(user=why["actor"].user, max_waiting_jobs=3), actor=Actor.system("test"))
    with pytest.raises(QuotaExceeded):
        grow_dag(dag.pk, GrowthRequest(MORE), **why)
    remove_dags([dag.pk], **why)
    with pytest.raises(Conflict):
        grow_dag(dag.pk, GrowthRequest(MORE), **why)
    assert untouched(dag)

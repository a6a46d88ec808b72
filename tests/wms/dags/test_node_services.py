"""Single nodes are run again, marked and changed, at any time, and the log agrees."""

from __future__ import annotations

import pytest

from tests.wms.dags.driving import advance, assert_log_agrees, match, run_all, run_one, states
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry
from wms.dags.models import Node
from wms.dags.services.dags import remove_dags
from wms.dags.services.nodes import change_nodes, mark_nodes, rerun_nodes
from wms.jobs.models import Job

CHAIN = """\
JOB A step.sub
JOB B step.sub
JOB C step.sub
JOB Z step.sub
PARENT A CHILD B
PARENT B CHILD C
"""
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site()


@pytest.fixture
def why(alice) -> dict:
    return {"actor": Actor.person(alice), "reason": "the calibration was wrong"}


@pytest.fixture
def failed(submit):
    """B failed, so C is futile; A and Z are done."""
    dag = run_all(match(submit(CHAIN)), {"B": 1})
    assert states(dag) == {"A": "done", "B": "failed", "C": "futile", "Z": "done"}
    assert dag.state == "failed"
    return dag


@pytest.mark.slow
def test_a_node_runs_again_with_all_that_depends_on_it(failed, why) -> None:
    rerun_nodes(failed.pk, ["B"], **why)
    failed.refresh_from_db()
    assert failed.state == "idle"
    assert states(failed) == {"A": "done", "B": "waiting", "C": "waiting", "Z": "done"}

    run_all(match(failed))

    assert failed.state == "completed"
    assert Job.objects.filter(topic_key=failed.pk, name="A").count() == 1
    assert Job.objects.filter(topic_key=failed.pk, name="B").count() == 2
    assert_log_agrees(failed)


def test_a_done_node_runs_again_while_the_dag_goes_on(submit, why) -> None:
    dag = match(submit(CHAIN))
    run_one("A")
    advance(dag)
    run_one("B")
    advance(dag)

    applied = rerun_nodes(dag.pk, ["A"], **why)

    # C is under way: it goes on, and is named as skipped.
    assert [Node.objects.get(pk=pk).name for pk in applied.skipped] == ["C"]
    advance(dag)
    assert states(dag) == {"A": "submitted", "B": "waiting", "C": "submitted", "Z": "submitted"}
    run_all(dag)
    assert dag.state == "completed"
    assert_log_agrees(dag)


@pytest.mark.slow
def test_a_retry_without_descendants_runs_only_what_was_futile_below(failed, why) -> None:
    rerun_nodes(failed.pk, ["B"], with_descendants=False, **why)

    run_all(match(failed))

    assert failed.state == "completed"
    assert Job.objects.filter(topic_key=failed.pk, name="Z").count() == 1
    assert_log_agrees(failed)


def test_what_another_failure_keeps_from_running_stays_futile(submit, why) -> None:
    text = "JOB A step.sub\nJOB B step.sub\nJOB C step.sub\nJOB Z step.sub\nPARENT A B CHILD C\n"
    dag = match(submit(text))
    run_one("A", 1)
    run_one("B", 1)
    advance(dag)

    rerun_nodes(dag.pk, ["A"], **why)
    advance(dag)

    assert states(dag) == {"A": "submitted", "B": "failed", "C": "futile", "Z": "submitted"}
    assert_log_agrees(dag)


def test_a_failed_node_that_is_marked_done_lets_its_children_run(submit, why) -> None:
    dag = match(submit(CHAIN))
    run_one("A")
    advance(dag)
    run_one("B", 1)
    advance(dag)
    assert states(dag)["C"] == "futile"

    mark_nodes(dag.pk, ["B"], as_done=True, **why)
    advance(dag)

    assert states(dag) == {"A": "done", "B": "done", "C": "submitted", "Z": "submitted"}
    assert Node.objects.get(dag=dag, name="B").state_reason == why["reason"]
    run_all(dag)
    assert dag.state == "completed"
    assert_log_agrees(dag)


def test_a_waiting_node_that_is_marked_failed_makes_what_is_below_futile(submit, why) -> None:
    dag = match(submit(CHAIN))

    mark_nodes(dag.pk, ["B"], as_done=False, **why)

    run_all(dag)
    assert states(dag) == {"A": "done", "B": "failed", "C": "futile", "Z": "done"}
    assert dag.state == "failed"
    assert_log_agrees(dag)


def test_values_of_nodes_that_have_not_run_are_changed(submit, why) -> None:
    dag = match(submit(CHAIN))

    change_nodes(dag.pk, ["B"], variables={"x": "1"}, priority=7, max_retries=2, **why)

    node = Node.objects.get(dag=dag, name="B")
    assert (node.variables["x"], node.priority, node.max_retries) == ("1", 7, 2)
    entry = AuditEntry.objects.get(action="change node")
    assert (entry.target, entry.reason) == (f"DAG {dag.pk}, node B", why["reason"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda pk, why: rerun_nodes(pk, ["A"], **why), "node A has not ended: it is submitted"),
        (lambda pk, why: rerun_nodes(pk, ["Q"], **why), "the DAG has no node Q"),
        (lambda pk, why: rerun_nodes(pk, [], **why), "name 1 to 10000 nodes"),
        (lambda pk, why: mark_nodes(pk, ["A"], as_done=True, **why), "it is submitted"),
        (lambda pk, why: change_nodes(pk, ["A"], priority=1, **why), "has been submitted already"),
        (lambda pk, why: change_nodes(pk, ["B"], priority=2**40, **why), "out of range"),
        (lambda pk, why: change_nodes(pk, ["B"], variables={"queue_it": "1"}, **why), "queue_it"),
        (lambda pk, why: change_nodes(pk, ["B"], variables={"x": "a\nb"}, **why), "in a line"),
    ],
)
def test_what_cannot_be_done_is_told_and_changes_nothing(submit, why, call, message) -> None:
    dag = match(submit(CHAIN))
    before = states(dag)

    with pytest.raises(InvalidInput, match=message):
        call(dag.pk, why)

    assert states(dag) == before
    assert not AuditEntry.objects.filter(action__contains="node").exists()


def test_a_reason_and_the_right_are_needed(failed, charlie) -> None:
    with pytest.raises(ReasonRequired):
        rerun_nodes(failed.pk, ["B"], actor=Actor.system("test"), reason=" ")
    with pytest.raises(NotPermitted):
        rerun_nodes(failed.pk, ["B"], actor=Actor.person(charlie), reason="mine")


def test_nodes_of_an_ended_dag_are_not_marked(failed, why) -> None:
    with pytest.raises(Conflict, match=f"DAG {failed.pk} has ended"):
        mark_nodes(failed.pk, ["B"], as_done=True, **why)


@pytest.mark.slow
def test_a_removed_dag_is_opened_again_by_a_rerun(submit, why) -> None:
    dag = match(submit(CHAIN))
    remove_dags([dag.pk], **why)
    advance(dag)

    rerun_nodes(dag.pk, ["A", "Z"], **why)

    dag.refresh_from_db()
    run_all(match(dag))
    assert dag.state == "completed"
    assert_log_agrees(dag)

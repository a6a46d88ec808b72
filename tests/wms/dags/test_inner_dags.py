"""DAGs inside of DAGs: where the outer one goes and what is done to it, they follow."""

from __future__ import annotations

import pytest

from tests.wms.dags.driving import (
    advance,
    assert_log_agrees,
    claim_of,
    end,
    end_script,
    match,
    run_all,
    run_one,
    states,
)
from wms.core.actors import Actor
from wms.dags.engine import cycle as engine
from wms.dags.engine.submitting.nodes_without_jobs import MAX_DEPTH
from wms.dags.models import Dag, Node, Rescue
from wms.dags.services.dags import (
    halt_dags,
    hold_dags,
    release_dags,
    rematch_dags,
    remove_dags,
    rescue_dag,
)
from wms.dags.services.nodes import rerun_nodes
from wms.dags.submission import runs
from wms.dags.submission.workspaces import put_file
from wms.jobs.models import Job

SYSTEM = Actor.system("test")
WHY = {"actor": SYSTEM, "reason": "test"}
OUTER = """\
JOB A step.sub
SUBDAG EXTERNAL S inner.dag
JOB Z step.sub
PARENT A CHILD S
PARENT S CHILD Z
"""
INNER = "JOB X step.sub\nJOB Y step.sub\nPARENT X CHILD Y\n"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site()


@pytest.fixture
def outer(submit) -> Dag:
    """A is done, and the inner DAG has begun with X."""
    dag = match(submit(OUTER, files={"inner.dag": INNER}))
    run_one("A")
    advance(dag)
    engine.run_cycle(dag.created_at)
    return dag


def _inner(dag: Dag) -> Dag:
    return Dag.objects.filter(root=dag).latest("pk")


def test_an_inner_dag_runs_at_the_site_of_the_outer_one_and_ends_its_node(outer) -> None:
    inner = _inner(outer)
    assert (inner.site, inner.state, inner.parent_node.name) == (outer.site, "running", "S")
    assert states(inner) == {"X": "submitted", "Y": "waiting"}

    run_all(outer)

    assert states(outer) == {"A": "done", "S": "done", "Z": "done"}
    assert outer.state == "completed"
    assert_log_agrees(outer)
    assert_log_agrees(_inner(outer))


@pytest.mark.slow
def test_an_inner_failure_fails_the_node_and_leaves_a_rescue_for_both(outer) -> None:
    run_all(outer, {"Y": 3})

    assert states(outer) == {"A": "done", "S": "failed", "Z": "futile"}
    paths = set(Rescue.objects.values_list("path", flat=True))
    assert paths == {"test.dag.rescue001", "inner.dag.rescue001"}

    again = rescue_dag(outer.pk, **WHY)
    run_all(match(again))

    assert again.state == "completed"
    assert Job.objects.filter(name="A").count() == 1
    assert Job.objects.filter(name="X").count() == 1
    assert Job.objects.filter(name="Y").count() == 2


@pytest.mark.slow
def test_a_retry_of_the_node_goes_on_from_the_inner_rescue(submit) -> None:
    dag = match(submit("SUBDAG EXTERNAL S inner.dag\nRETRY S 1", files={"inner.dag": INNER}))
    advance(dag)
    run_one("X")
    engine.run_cycle(dag.created_at)
    run_one("Y", 1)
    for _ in range(4):
        engine.run_cycle(dag.created_at)

    run_all(dag)

    assert dag.state == "completed"
    assert Job.objects.filter(name="X").count() == 1
    assert Dag.objects.filter(root=dag).count() == 2


@pytest.mark.slow
def test_a_hold_and_a_release_reach_the_inner_dag(outer) -> None:
    hold_dags([outer.pk], **WHY)
    assert _inner(outer).state == "held"
    assert Job.objects.get(name="X").state == "held"

    release_dags([outer.pk], actor=SYSTEM)
    assert _inner(outer).state == "running"
    run_all(outer)
    assert outer.state == "completed"


def test_a_halt_reaches_the_inner_dag_which_ends_with_a_rescue(outer) -> None:
    halt_dags([outer.pk], **WHY)
    run_all(outer)

    inner = _inner(outer)
    assert (inner.state, inner.status, inner.exit_code) == ("failed", 6, 1)
    assert states(inner) == {"X": "done", "Y": "ready"}
    outer.refresh_from_db()
    # All of its nodes have ended, one of them badly.
    assert (outer.state, outer.status) == ("failed", 2)


def test_a_removal_kills_the_jobs_of_the_inner_dag(outer) -> None:
    remove_dags([outer.pk], **WHY)

    assert _inner(outer).state == "removed"
    assert Job.objects.get(name="X").state == "killed"
    assert advance(outer).state == "removed"
    assert_log_agrees(outer)


@pytest.mark.slow
def test_a_rematch_takes_the_inner_dag_along(outer, make_site) -> None:
    make_site("site-b")
    rematch_dags([outer.pk], **WHY)
    inner = _inner(outer)
    assert (inner.state, inner.site) == ("idle", None)

    match(outer)
    engine.run_cycle(outer.created_at)

    inner.refresh_from_db()
    assert outer.site.name == "site-b"
    assert (inner.state, inner.site) == ("running", outer.site)
    assert states(inner) == {"X": "submitted", "Y": "waiting"}
    for _ in range(3):
        engine.run_cycle(outer.created_at)
    end(claim_of("X", "site-b"))
    engine.run_cycle(outer.created_at)
    assert states(inner) == {"X": "done", "Y": "submitted"}
    assert_log_agrees(inner)


@pytest.mark.slow
def test_files_that_are_made_or_changed_before_the_node_is_submitted_count(submit) -> None:
    text = "JOB A step.sub\nSUBDAG EXTERNAL S new.dag\nSUBDAG EXTERNAL T inner.dag\n"
    text += "SCRIPT PRE T pre.sh\nPARENT A CHILD S\n"
    dag = match(submit(text, files={"inner.dag": INNER, "pre.sh": "#!/bin/sh\n"}))
    advance(dag)
    # What A and the PRE script of T leave in the workspace.
    put_file(dag.workspace, "new.dag", b"JOB N new.sub\n")
    put_file(dag.workspace, "new.sub", b"executable = /bin/true\nqueue\n")
    put_file(dag.workspace, "inner.dag", b"JOB P step.sub\n")
    run_one("A")
    end_script(dag, "T", "pre")
    advance(advance(dag))

    names = Dag.objects.filter(root=dag).values_list("parent_node__name", "nodes__name")
    assert set(names) == {("S", "N"), ("T", "P")}
    assert run_all(dag).state == "completed"


def test_a_file_that_is_not_there_or_wrong_fails_the_node_only(submit) -> None:
    text = "SUBDAG EXTERNAL S no.dag\nSUBDAG EXTERNAL T bad.dag\nJOB A step.sub"
    dag = run_all(match(submit(text, files={"bad.dag": "JOB X\n"})))

    assert states(dag) == {"S": "failed", "T": "failed", "A": "done"}
    reasons = dict(dag.nodes.values_list("name", "state_reason"))
    assert "no.dag" in reasons["S"]
    assert "bad.dag:1" in reasons["T"]


@pytest.mark.slow
def test_a_dag_that_contains_itself_ends_at_the_greatest_depth(submit) -> None:
    dag = match(submit("SUBDAG EXTERNAL S test.dag"))
    for _ in range(3 * MAX_DEPTH):
        run_all(dag)

    assert dag.state == "failed"
    assert Dag.objects.filter(root=dag).count() == MAX_DEPTH
    deepest = Dag.objects.latest("pk")
    assert f"nested {MAX_DEPTH} deep" in deepest.nodes.get().state_reason


def test_an_inner_dag_is_read_for_a_shorter_time_than_another(submit, monkeypatch) -> None:
    monkeypatch.setattr(runs, "_LIMIT_OF_INNER_S", -1.0)
    dag = match(submit("SUBDAG EXTERNAL S inner.dag", files={"inner.dag": INNER}))

    run_all(dag)

    assert states(dag) == {"S": "failed"}
    assert "longer than -1 s" in Node.objects.get(dag=dag).state_reason


@pytest.mark.slow
def test_a_done_inner_dag_that_runs_again_begins_anew_though_pre_runs_before_it(submit) -> None:
    text = "SUBDAG EXTERNAL S inner.dag\nSCRIPT PRE S pre.sh\nRETRY S 1\nJOB Z step.sub"
    dag = match(submit(text, files={"inner.dag": INNER, "pre.sh": "#!/bin/sh\n"}))
    end_script(dag, "S", "pre")
    advance(advance(dag))
    run_one("X")
    advance(dag)
    run_one("Y", 1)
    advance(advance(dag))
    end_script(dag, "S", "pre")
    advance(advance(dag))
    run_one("Y")
    advance(advance(dag))
    assert states(dag) == {"S": "done", "Z": "submitted"}

    rerun_nodes(dag.pk, ["S"], **WHY)
    advance(dag)
    end_script(dag, "S", "pre")
    advance(advance(dag))

    assert _inner(dag).rescue_number == 0
    assert states(_inner(dag)) == {"X": "submitted", "Y": "waiting"}

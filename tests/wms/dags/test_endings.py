"""How DAGs end in odd moments: the rescue is written, FINAL runs, and the engine comes to rest."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.wms.dags.driving import (
    NOW,
    advance,
    assert_log_agrees,
    claim_of,
    claim_one,
    end,
    end_script,
    match,
    run_all,
    run_one,
    states,
)
from wms.core.actors import Actor
from wms.core.errors import Conflict
from wms.core.models import InboxEntry
from wms.dags.engine import cycle as engine
from wms.dags.engine import timers
from wms.dags.lifecycle import TOPICS
from wms.dags.models import Dag, NodeTimer, Rescue
from wms.dags.services.dags import (
    change_limits,
    halt_dags,
    hold_dags,
    release_dags,
    rematch_dags,
    remove_dags,
    rescue_dag,
)
from wms.dags.services.nodes import mark_nodes, mark_provisioned, rerun_nodes
from wms.jobs.models import Job

WHY = {"actor": Actor.system("test"), "reason": "test"}
FINAL = "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\nFINAL F step.sub\n"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site()


def test_final_runs_after_a_removal_and_decides_the_exit_code(submit) -> None:
    dag = match(submit(FINAL))
    remove_dags([dag.pk], **WHY)
    dag.refresh_from_db()
    assert dag.state == "running"

    run_all(dag)

    assert states(dag) == {"A": "failed", "B": "futile", "F": "done"}
    # FINAL's success decides the exit code, whatever happened before.
    assert (dag.state, dag.status, dag.exit_code) == ("removed", 4, 0)
    assert_log_agrees(dag)


def test_a_held_dag_that_is_removed_runs_its_final_node(submit) -> None:
    dag = match(submit(FINAL))
    hold_dags([dag.pk], **WHY)

    remove_dags([dag.pk], **WHY)

    assert run_all(dag).state == "removed"
    assert states(dag)["F"] == "done"


def test_a_second_removal_does_not_wait_for_final(submit) -> None:
    dag = match(submit(FINAL))
    remove_dags([dag.pk], **WHY)
    advance(dag)
    assert states(dag)["F"] == "submitted"

    remove_dags([dag.pk], **WHY)

    dag.refresh_from_db()
    assert dag.state == "removed"
    assert states(dag)["F"] == "failed"
    advance(dag)
    assert not Job.objects.filter(state="waiting").exists()
    assert_log_agrees(dag)


@pytest.mark.slow
def test_a_dag_that_ends_without_a_site_runs_final_at_the_next_one(submit, make_site) -> None:
    dag = match(submit("JOB A step.sub\nFINAL F step.sub\n"))
    make_site("site-b")
    attempt = claim_one()
    rematch_dags([dag.pk], lets_finish=True, **WHY)
    end(attempt)
    advance(dag)
    assert (dag.state, states(dag)) == ("idle", {"A": "done", "F": "ready"})

    match(dag)
    assert dag.site.name == "site-b"
    end(claim_of("F", "site-b"))

    assert advance(dag).state == "completed"
    assert_log_agrees(dag)


def test_a_halted_dag_with_pre_scripts_that_wait_for_their_turn_is_drained(submit) -> None:
    text = "JOB A step.sub\nJOB B step.sub\nSCRIPT PRE ALL_NODES /bin/true\n"
    dag = submit(text)
    change_limits(dag.pk, options={"max_pre": 1}, **WHY)
    match(dag)
    halt_dags([dag.pk], **WHY)
    end_script(dag, "A", "pre")

    advance(dag)

    assert (dag.state, dag.status) == ("failed", 6)
    assert states(dag) == {"A": "ready", "B": "ready"}
    assert Rescue.objects.get().path == "test.dag.rescue001"
    assert_log_agrees(dag)


def test_one_run_of_the_same_files_goes_on_at_a_time(submit) -> None:
    dag = run_all(match(submit("JOB A step.sub")), {"A": 1})
    rescue_dag(dag.pk, **WHY)

    with pytest.raises(Conflict, match="has not ended"):
        rescue_dag(dag.pk, **WHY)
    with pytest.raises(Conflict, match="has not ended"):
        rerun_nodes(dag.pk, ["A"], **WHY)


def test_a_rescue_is_the_next_run_from_what_was_done(submit) -> None:
    dag = run_all(match(submit("JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B")), {"B": 1})

    again = rescue_dag(dag.pk, **WHY)

    assert (again.previous_run, again.rescue_number) == (dag, 1)
    assert states(again) == {"A": "done", "B": "waiting"}
    assert run_all(match(again)).state == "completed"
    assert_log_agrees(again)


@pytest.mark.slow
def test_final_and_services_run_again_when_a_dag_is_opened_again(submit) -> None:
    dag = run_all(match(submit("JOB A step.sub\nSERVICE S step.sub\nFINAL F step.sub")), {"A": 1})
    assert (dag.state, dag.status, dag.exit_code) == ("completed", 2, 0)

    rerun_nodes(dag.pk, ["A"], **WHY)
    run_all(match(dag))

    assert dag.state == "completed"
    assert (dag.status, dag.exit_code) == (0, 0)
    assert Job.objects.filter(name="F").count() == 2
    assert_log_agrees(dag)


@pytest.mark.slow
def test_everything_waits_for_a_provisioner_also_after_a_rematch(submit, make_site) -> None:
    dag = match(submit("JOB A step.sub\nPROVISIONER P step.sub\nSERVICE S step.sub"))
    assert states(dag) == {"A": "waiting", "P": "submitted", "S": "waiting"}
    make_site("site-b")
    rematch_dags([dag.pk], **WHY)
    match(dag)
    assert states(dag) == {"A": "waiting", "P": "submitted", "S": "waiting"}

    mark_provisioned(dag.pk, ["P"], **WHY)
    advance(dag)

    assert states(dag) == {"A": "submitted", "P": "submitted", "S": "submitted"}


def test_a_provisioner_that_ends_too_early_ends_a_dag_of_which_something_is_done(submit) -> None:
    dag = match(submit("JOB A step.sub DONE\nJOB B step.sub\nPROVISIONER P step.sub"))
    run_one("P", 1)

    advance(dag)

    assert dag.state == "failed"
    assert "provisioner P" in dag.state_reason
    again = rescue_dag(dag.pk, **WHY)
    match(again)
    assert states(again)["P"] == "submitted"


def test_a_weak_child_of_a_futile_node_is_given_up_when_others_are_marked(submit) -> None:
    text = "".join(f"JOB {name} step.sub\n" for name in "GYZM")
    arcs = "PARENT G CHILD Y\nWEAK PARENT Y CHILD Z\nPARENT M CHILD Z\n"
    dag = match(submit(text + "JOB Q step.sub\n" + arcs))
    run_one("G", 1)
    run_one("M", 1)
    advance(dag)
    assert states(dag)["Z"] == "futile"

    mark_nodes(dag.pk, ["M"], as_done=True, **WHY)
    advance(dag)

    assert states(dag)["Z"] == "futile"
    assert_log_agrees(dag)


def test_no_timer_outlives_its_dag_and_none_counts_while_it_is_held(submit) -> None:
    dag = match(submit("JOB A step.sub\nTIMEOUT A QUEUE 60"))
    hold_dags([dag.pk], **WHY)
    Dag.objects.filter(pk=dag.pk).update(state_since=NOW)
    later = NOW + timedelta(seconds=100)
    assert timers.run_cycle(later)["timers"] == 0
    release_dags([dag.pk], actor=Actor.system("test"))

    run_all(dag)

    assert dag.state == "completed"
    assert not NodeTimer.objects.exists()
    assert timers.run_cycle(later)["timers"] == 0
    engine.run_cycle(later)
    assert not InboxEntry.objects.filter(topic__in=TOPICS).exists()

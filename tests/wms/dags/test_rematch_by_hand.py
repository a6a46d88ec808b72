from __future__ import annotations

import pytest

from tests.wms.dags.driving import (
    advance,
    assert_log_agrees,
    claim_one,
    end,
    match,
    states,
)
from tests.wms.dags.rematching import finish, half_done, lose, move_to
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Node
from wms.dags.services.dags import hold_dags, release_dags, rematch_dags, remove_dags
from wms.jobs.attempts.guard import AttemptSuperseded
from wms.jobs.models import Job
from wms.jobs.states import JobCause
from wms.taskqueues.models import WaitingJob


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site("site-a")


@pytest.fixture
def by_alice(alice: User) -> dict:
    return {"actor": Actor.person(alice), "reason": "its storage is slow"}


def test_a_rematched_dag_is_idle_and_keeps_what_is_done(submit, by_alice) -> None:
    dag, running = half_done(submit)

    applied = rematch_dags([dag.pk], **by_alice)

    assert (applied.changed, applied.skipped) == ([dag.pk], [])
    dag.refresh_from_db()
    assert (dag.state, dag.site, dag.matched_at) == ("idle", None, None)
    assert (dag.match_attributes, dag.environment) == ({}, {})
    assert (dag.done_count, dag.submitted_count, dag.rematch_count) == (1, 0, 1)
    assert states(dag) == {"A": "done", "B": "ready", "C": "ready", "D": "waiting"}
    assert not WaitingJob.objects.exists()
    assert set(Job.objects.exclude(name="A").values_list("state", flat=True)) == {"killed"}
    killed = Job.objects.get(name="B")
    assert killed.state_cause == JobCause.DAG_LEFT
    assert killed.state_reason.endswith(by_alice["reason"])
    with pytest.raises(AttemptSuperseded):
        end(running)
    assert_log_agrees(dag)


def test_the_engine_leaves_a_rematched_dag_alone_until_it_is_matched(submit, by_alice) -> None:
    dag, _ = half_done(submit)
    rematch_dags([dag.pk], **by_alice)

    advance(dag)

    assert dag.state == "idle"
    assert states(dag) == {"A": "done", "B": "ready", "C": "ready", "D": "waiting"}
    assert_log_agrees(dag)


def test_a_rematched_dag_runs_to_its_end_at_another_site(submit, make_site, by_alice) -> None:
    dag, _ = half_done(submit)
    make_site("site-b")
    rematch_dags([dag.pk], **by_alice)

    move_to(dag, "site-b")

    assert dag.site is not None
    assert dag.site.name == "site-b"
    assert Node.objects.get(dag=dag, name="B").retry_number == 0
    assert finish(dag, "site-b").state == "completed"
    assert Job.objects.filter(name="A").count() == 1
    assert_log_agrees(dag)


@pytest.mark.slow
def test_running_jobs_may_finish_where_they_are(submit, make_site, by_alice) -> None:
    dag, running = half_done(submit)
    make_site("site-b")

    rematch_dags([dag.pk], lets_finish=True, **by_alice)

    dag.refresh_from_db()
    assert (dag.state, dag.submitted_count) == ("idle", 1)
    assert states(dag) == {"A": "done", "B": "submitted", "C": "ready", "D": "waiting"}
    assert claim_one() is None
    end(running)
    assert advance(dag).state == "idle"
    assert states(dag)["B"] == "done"
    assert_log_agrees(dag)
    move_to(dag, "site-b")
    assert finish(dag, "site-b").state == "completed"
    assert_log_agrees(dag)


def test_a_dag_whose_last_jobs_finish_while_it_is_idle_is_completed(submit, by_alice) -> None:
    dag = match(submit("JOB A step.sub"))
    running = claim_one()
    assert running is not None
    rematch_dags([dag.pk], lets_finish=True, **by_alice)

    end(running)

    assert advance(dag).state == "completed"
    assert_log_agrees(dag)


def test_a_dag_whose_last_jobs_fail_while_it_is_idle_has_failed(submit, by_alice) -> None:
    dag = match(submit("JOB A step.sub"))
    running = claim_one()
    assert running is not None
    rematch_dags([dag.pk], lets_finish=True, **by_alice)

    end(running, exit_code=1)

    assert advance(dag).state == "failed"
    assert_log_agrees(dag)


def test_the_retry_of_a_job_left_behind_goes_to_the_new_site(submit, make_site, by_alice) -> None:
    dag = match(submit("JOB A step.sub\nRETRY A 1"))
    running = claim_one()
    assert running is not None
    make_site("site-b")
    rematch_dags([dag.pk], lets_finish=True, **by_alice)
    move_to(dag, "site-b")

    end(running, exit_code=1)
    advance(dag)

    assert claim_one("site-a") is None
    assert finish(dag, "site-b").state == "completed"
    assert Node.objects.get().retry_number == 1
    assert_log_agrees(dag)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["idle", "held", "site-b"])
def test_a_job_that_comes_back_does_not_wait_at_the_site_its_dag_has_left(
    submit, make_site, by_alice, where: str
) -> None:
    dag, running = half_done(submit)
    make_site("site-b")
    rematch_dags([dag.pk], lets_finish=True, **by_alice)
    if where == "held":
        hold_dags([dag.pk], **by_alice)
    elif where == "site-b":
        move_to(dag, "site-b")

    lose(running)
    advance(dag)

    assert claim_one("site-a") is None
    assert Job.objects.get(pk=running.job_id).state == "killed"
    assert Node.objects.get(dag=dag, name="B").retry_number == 0
    assert_log_agrees(dag)
    if where == "held":
        release_dags([dag.pk], actor=by_alice["actor"])
    if where != "site-b":
        assert states(dag)["B"] == "ready"
        move_to(dag, "site-b")
    assert states(dag)["B"] == "submitted"
    assert finish(dag, "site-b").state == "completed"
    assert_log_agrees(dag)


def test_a_job_that_came_back_and_was_claimed_again_is_left_to_its_pilot(submit, by_alice) -> None:
    dag, running = half_done(submit)
    rematch_dags([dag.pk], lets_finish=True, **by_alice)
    lose(running)
    again = claim_one()
    assert again is not None

    advance(dag)

    assert states(dag)["B"] == "submitted"
    end(again)
    advance(dag)
    assert states(dag)["B"] == "done"
    assert_log_agrees(dag)


def test_a_job_that_ended_before_the_engine_looked_counts(submit, by_alice) -> None:
    dag, running = half_done(submit)
    end(running)

    rematch_dags([dag.pk], **by_alice)
    advance(dag)

    assert states(dag) == {"A": "done", "B": "done", "C": "ready", "D": "waiting"}
    assert (dag.done_count, dag.submitted_count) == (2, 0)
    assert_log_agrees(dag)


@pytest.mark.slow
def test_a_held_dag_can_be_rematched_and_its_held_jobs_with_it(submit, make_site, by_alice) -> None:
    dag, _ = half_done(submit)
    make_site("site-b")
    hold_dags([dag.pk], **by_alice)

    rematch_dags([dag.pk], **by_alice)

    dag.refresh_from_db()
    assert dag.state == "idle"
    assert not Job.objects.filter(state="held").exists()
    move_to(dag, "site-b")
    assert finish(dag, "site-b").state == "completed"
    assert_log_agrees(dag)


def test_an_idle_dag_is_removed_with_the_jobs_that_it_left_behind(submit, by_alice) -> None:
    dag, running = half_done(submit)
    rematch_dags([dag.pk], lets_finish=True, **by_alice)

    remove_dags([dag.pk], **by_alice)
    advance(dag)

    with pytest.raises(AttemptSuperseded):
        end(running)
    assert (dag.state, dag.submitted_count) == ("removed", 0)
    assert_log_agrees(dag)


def test_a_second_rematch_stops_what_the_first_one_left_behind(submit, make_site, by_alice) -> None:
    dag, running = half_done(submit)
    make_site("site-b")
    rematch_dags([dag.pk], lets_finish=True, **by_alice)
    move_to(dag, "site-b")

    rematch_dags([dag.pk], **by_alice)

    assert Job.objects.get(pk=running.job_id).state == "killed"
    dag.refresh_from_db()
    assert (dag.submitted_count, dag.rematch_count) == (0, 2)
    assert_log_agrees(dag)

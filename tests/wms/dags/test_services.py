from __future__ import annotations

import pytest

from tests.wms.dags.driving import (
    advance,
    assert_log_agrees,
    claim_of,
    claim_one,
    end,
    match,
    states,
)
from wms.core.actors import Actor
from wms.core.errors import NotFound, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.dags.models import DagEvent
from wms.dags.services.dags import hold_dags, release_dags, remove_dags
from wms.jobs.attempts.guard import AttemptSuperseded
from wms.jobs.attempts.rescheduling import reschedule_jobs
from wms.jobs.models import Attempt, Job
from wms.jobs.services import kill_jobs
from wms.jobs.states import JobCause

TWO = "JOB A step.sub\nJOB B step.sub\nJOB C step.sub\nPARENT A CHILD C"


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site("site-a")


def test_a_held_dag_starts_nothing_more_and_lets_what_runs_finish(submit, alice: User) -> None:
    dag = match(submit(TWO))
    running = claim_of("A")

    hold_dags([dag.pk], actor=Actor.person(alice), reason="wrong input")

    assert claim_one() is None
    end(running)
    assert advance(dag).state == "held"
    assert states(dag) == {"A": "done", "B": "submitted", "C": "ready"}
    held = Job.objects.get(name="B")
    assert held.state_cause == JobCause.DAG_HELD
    assert held.state_reason.endswith("wrong input")

    release_dags([dag.pk], actor=Actor.person(alice))
    advance(dag)

    assert dag.state == "running"
    for _ in range(2):
        attempt = claim_one()
        assert attempt is not None
        end(attempt)
    assert advance(dag).state == "completed"
    assert_log_agrees(dag)


def test_a_job_that_comes_back_to_a_held_dag_is_held_as_well(submit, alice: User) -> None:
    dag = match(submit("JOB A step.sub"))
    running = claim_one()
    assert running is not None
    hold_dags([dag.pk], actor=Actor.person(alice), reason="wait")

    reschedule_jobs(
        [running.job_id],
        outcome=Attempt.Outcome.LOST,
        actor=Actor.system("test"),
        reason="its pilot is lost",
    )
    advance(dag)

    assert Job.objects.get().state == "held"
    assert claim_one() is None
    release_dags([dag.pk], actor=Actor.person(alice))
    assert claim_one() is not None


def test_a_dag_without_site_is_negotiated_after_its_release(submit, alice: User) -> None:
    dag = submit(TWO)
    hold_dags([dag.pk], actor=Actor.person(alice), reason="not yet")
    assert match(dag).state == "held"

    release_dags([dag.pk], actor=Actor.person(alice))

    dag.refresh_from_db()
    assert dag.state == "idle"
    assert match(dag).state == "running"
    assert_log_agrees(dag)


def test_a_removed_dag_kills_its_jobs_and_takes_no_more_reports(submit, alice: User) -> None:
    dag = match(submit(TWO))
    running = claim_one()
    assert running is not None

    remove_dags([dag.pk], actor=Actor.person(alice), reason="a mistake")

    assert claim_one() is None
    assert set(Job.objects.values_list("state", flat=True)) == {"killed"}
    with pytest.raises(AttemptSuperseded):
        end(running)
    advance(dag)
    assert dag.state == "removed"
    assert states(dag) == {"A": "failed", "B": "failed", "C": "futile"}
    assert_log_agrees(dag)


def test_a_node_tells_who_killed_its_job(submit, sam: User) -> None:
    dag = match(submit(TWO))
    job = dag.nodes.get(name="A").job_id

    kill_jobs([job], actor=Actor.person(sam), reason="free slots")
    advance(dag)

    told = "the job was killed by sam: free slots"
    assert dag.nodes.get(name="A").state_reason == told
    end(claim_one())
    assert told in advance(dag).state_reason


def test_every_action_tells_who_and_why(submit, sam: User) -> None:
    dag = submit(TWO)

    hold_dags([dag.pk], actor=Actor.person(sam), reason="storage is full")

    event = DagEvent.objects.get(event="hold")
    assert (event.actor, event.reason) == ("sam", "storage is full")
    entry = AuditEntry.objects.get(action="hold DAG")
    assert (entry.actor, entry.reason, entry.target) == ("sam", "storage is full", f"DAG {dag.pk}")


@pytest.mark.parametrize("action", [hold_dags, remove_dags])
def test_hold_and_remove_need_a_reason(submit, alice: User, action) -> None:
    dag = submit(TWO)

    with pytest.raises(ReasonRequired):
        action([dag.pk], actor=Actor.person(alice), reason="  ")

    dag.refresh_from_db()
    assert dag.state == "idle"


@pytest.mark.parametrize("action", [hold_dags, release_dags, remove_dags])
def test_another_user_may_not_steer_a_dag(submit, charlie: User, action) -> None:
    dag = submit(TWO)

    with pytest.raises(NotPermitted, match="charlie"):
        action([dag.pk], actor=Actor.person(charlie), reason="mine now")

    assert not DagEvent.objects.filter(actor="charlie").exists()


def test_a_dag_that_does_not_exist_is_not_found(sam: User) -> None:
    with pytest.raises(NotFound, match="DAG 77"):
        hold_dags([77], actor=Actor.person(sam), reason="x")


def test_a_dag_in_another_state_is_skipped_and_nothing_is_audited(submit, alice: User) -> None:
    dag = submit(TWO)

    applied = release_dags([dag.pk], actor=Actor.person(alice))

    assert (applied.changed, applied.skipped) == ([], [dag.pk])
    assert not AuditEntry.objects.filter(action="release DAG").exists()

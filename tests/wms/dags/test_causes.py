"""Causes are values: whatever words people find for their reasons, nothing is decided by them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DataError

from tests.wms.dags.driving import NOW, advance, claim_one, end, match, run_one, states
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.engine import cycle as engine
from wms.dags.engine import shared_rounds, timers
from wms.dags.models import DagEvent
from wms.dags.services.dags import hold_dags, release_dags
from wms.dags.states import DagCause, NodeCause
from wms.jobs import services
from wms.jobs.models import Job, JobEvent
from wms.jobs.states import JobCause

NODE = "JOB A step.sub"


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site("site-a")


def test_events_of_a_dag_that_a_person_held_are_read_whatever_the_words(
    submit, alice: User
) -> None:
    dag = match(submit(NODE))
    running = claim_one()
    assert running is not None
    hold_dags([dag.pk], actor=Actor.person(alice), reason="the engine room floods")

    end(running)
    engine.run_cycle(NOW)

    assert states(dag) == {"A": "done"}


def test_events_of_a_dag_that_the_engine_cannot_go_on_with_wait_for_its_release(
    submit, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    dag = match(submit(NODE))
    with monkeypatch.context() as patched:
        for rounds in (engine, shared_rounds):
            patched.setattr(rounds, "_act", _broken)
        run_one("A")
        engine.run_cycle(NOW)
    engine.run_cycle(NOW)

    dag.refresh_from_db()
    assert (dag.state, dag.state_cause) == ("held", DagCause.ENGINE)
    assert DagEvent.objects.get(event="hold").cause == DagCause.ENGINE
    assert states(dag) == {"A": "submitted"}

    release_dags([dag.pk], actor=Actor.person(alice))

    assert advance(dag).state == "completed"
    assert dag.state_cause == ""


def _broken(*_: object) -> bool:
    raise DataError("value too long")


def test_a_job_that_a_person_held_stays_so_when_its_dag_is_released_whatever_the_words(
    submit, alice: User
) -> None:
    dag = match(submit(f"{NODE}\nJOB B step.sub"))
    by_hand = Job.objects.get(name="A")
    actor = Actor.person(alice)
    services.hold_jobs([by_hand.pk], actor=actor, reason="the DAG is held up by the customs")
    hold_dags([dag.pk], actor=actor, reason="wait")
    with_dag = Job.objects.get(name="B")
    assert with_dag.state_cause == JobCause.DAG_HELD

    release_dags([dag.pk], actor=actor)

    by_hand.refresh_from_db()
    with_dag.refresh_from_db()
    assert (by_hand.state, by_hand.state_cause) == ("held", JobCause.PERSON)
    assert with_dag.state == "waiting"


@pytest.mark.parametrize("limit", ["QUEUE", "RUN"])
def test_a_job_whose_node_has_a_time_that_is_up_tells_it_as_its_cause(submit, limit: str) -> None:
    match(submit(f"{NODE}\nTIMEOUT A {limit} 60"))

    timers.run_cycle(NOW + timedelta(seconds=61))
    engine.run_cycle(NOW + timedelta(seconds=61))

    killed = JobEvent.objects.get(event="kill")
    assert (killed.cause, killed.job.state_cause) == (JobCause.TIMEOUT, JobCause.TIMEOUT)


def test_nodes_tell_why_they_failed_and_their_dag_why_it_ended(submit) -> None:
    dag = match(submit(f"{NODE}\nJOB B step.sub\nPARENT A CHILD B"))

    run_one("A", 1)
    advance(dag)

    assert dag.state_cause == DagCause.NODE_FAILED
    assert dict(dag.nodes.values_list("name", "state_cause")) == {
        "A": NodeCause.JOB,
        "B": NodeCause.ANCESTOR,
    }

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connections, transaction

from tests.wms.conftest import SUBMIT_FILE
from tests.wms.dags.driving import (
    NOW,
    advance,
    assert_log_agrees,
    claim_one,
    end,
    match,
    run_one,
    states,
)
from wms.core.models import InboxEntry
from wms.dags.engine import cycle as engine
from wms.dags.engine.round import ENGINE
from wms.dags.models import Node, NodeEvent
from wms.dags.states import DagCause, NodeCause
from wms.jobs.attempts.rescheduling import reschedule_jobs
from wms.jobs.models import Attempt, Job

DIAMOND = "\n".join(
    [*(f"JOB {name} step.sub" for name in "ABCD"), "PARENT A CHILD B C", "PARENT B C CHILD D"]
)


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site("site-a")


def test_children_run_after_all_of_their_parents(submit) -> None:
    dag = match(submit(DIAMOND))
    assert states(dag) == {"A": "submitted", "B": "waiting", "C": "waiting", "D": "waiting"}

    run_one("A")
    advance(dag)
    assert states(dag) == {"A": "done", "B": "submitted", "C": "submitted", "D": "waiting"}

    run_one("B")
    advance(dag)
    assert states(dag)["D"] == "waiting"

    run_one("C")
    advance(dag)
    run_one("D")
    advance(dag)
    assert dag.state == "completed"
    assert (dag.done_count, dag.submitted_count) == (4, 0)
    assert dag.ended_at == NOW
    assert_log_agrees(dag)


def test_a_failed_node_is_retried_as_a_new_job_and_then_succeeds(submit) -> None:
    dag = match(submit("JOB A step.sub\nRETRY A 2"))
    run_one("A", exit_code=1)
    advance(dag)

    node = Node.objects.get(dag=dag)
    assert (node.state, node.retry_number) == ("submitted", 1)
    run_one("A")
    advance(dag)

    assert dag.state == "completed"
    assert Job.objects.count() == 2
    assert_log_agrees(dag)


def test_a_failure_makes_descendants_futile_and_lets_the_rest_run(submit) -> None:
    dag = match(submit(DIAMOND + "\nJOB E step.sub\nPARENT D CHILD E\nJOB X step.sub"))
    run_one("A")
    run_one("X")
    advance(dag)

    run_one("B", exit_code=3)
    advance(dag)
    assert dag.state == "running"
    assert states(dag)["D"] == states(dag)["E"] == "futile"
    run_one("C")
    advance(dag)

    assert dag.state == "failed"
    assert dag.state_cause == DagCause.NODE_FAILED
    assert "first B: " in dag.state_reason
    assert (dag.done_count, dag.failed_count, dag.futile_count) == (3, 1, 2)
    failed = Node.objects.get(dag=dag, name="B")
    assert failed.state_cause == NodeCause.JOB
    assert failed.state_reason.endswith("exit code 3")
    assert_log_agrees(dag)


def test_a_node_that_fails_more_often_than_its_retries_has_failed(submit) -> None:
    dag = match(submit("JOB A step.sub\nRETRY A 1"))
    for _ in range(2):
        run_one("A", exit_code=1)
        advance(dag)

    assert dag.state == "failed"
    assert claim_one() is None
    assert_log_agrees(dag)


def test_macros_are_filled_in_from_the_node_and_the_site(submit, make_site) -> None:
    make_site("site-a", environment="Area=/scratch", attributes='Port = "8443"')
    text = (
        "executable = step.sh\n"
        "arguments = $(JOB) $(x) $(RETRY) $$(Name):$$(Port) $$(No:none) $(DAGManJobId)\n"
        "environment = AREA=$ENV(Area)/$(JOB)\nqueue\n"
    )

    dag = match(submit('JOB A step.sub\nVARS A x="y"', files={"step.sub": text}))

    job = Job.objects.get()
    assert job.arguments == ["A", "y", "0", "site-a:8443", "none", str(dag.pk)]
    assert job.environment == {"AREA": "/scratch/A"}
    assert job.needs["sites"] == ["site-a"]


def test_a_description_that_is_undefined_at_the_site_holds_the_dag_by_name(submit) -> None:
    text = "executable = step.sh\narguments = $$(Gatekeeper)\nqueue\n"

    dag = match(
        submit("JOB A step.sub\nJOB B b.sub", files={"step.sub": SUBMIT_FILE, "b.sub": text})
    )

    assert dag.state == "held"
    assert dag.state_cause == DagCause.SUBMISSION
    assert "node B: arguments:" in dag.state_reason
    assert states(dag) == {"A": "submitted", "B": "ready"}
    assert_log_agrees(dag)


def test_an_event_whose_transaction_commits_late_is_not_missed(submit) -> None:
    """Ids are given at insertion: an earlier id may become visible after a later one was read."""
    dag = match(submit("JOB A step.sub\nJOB B step.sub"))
    first, second = sorted([claim_one(), claim_one()], key=lambda attempt: attempt.job.name)

    end(second)
    late = InboxEntry.objects.get(key=dag.pk)
    InboxEntry.objects.all().delete()
    end(first)
    advance(dag)
    assert states(dag) == {"A": "done", "B": "submitted"}
    late.save(force_insert=True)
    advance(dag)

    assert dag.state == "completed"


def test_a_round_that_is_broken_off_is_done_again_whole(submit) -> None:
    dag = match(submit("JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B"))
    run_one("A")

    with transaction.atomic():
        engine.advance(dag.pk, now=NOW)
        transaction.set_rollback(True)
    assert states(dag) == {"A": "submitted", "B": "waiting"}
    advance(dag)
    advance(dag)

    assert states(dag) == {"A": "done", "B": "submitted"}
    assert Job.objects.count() == 2
    assert NodeEvent.objects.filter(event="succeed").count() == 1


def test_a_rescheduled_job_does_not_move_its_node(submit) -> None:
    dag = match(submit("JOB A step.sub"))
    attempt = claim_one()
    assert attempt is not None

    reschedule_jobs(
        [attempt.job_id], outcome=Attempt.Outcome.LOST, actor=ENGINE, reason="pilot lost"
    )
    advance(dag)

    assert states(dag) == {"A": "submitted"}
    run_one("A")
    assert advance(dag).state == "completed"


@pytest.mark.slow
def test_the_queries_of_a_round_do_not_grow_with_the_dag(
    submit, django_assert_max_num_queries
) -> None:
    def star(name: str, size: int) -> str:
        lines = [f"JOB {name}{n} step.sub" for n in range(size)]
        return (
            "\n".join([f"JOB {name} step.sub", *lines])
            + "\n"
            + "\n".join(f"PARENT {name} CHILD {name}{n}" for n in range(size))
        )

    counts = []
    for size in (2, 60):
        dag = match(submit(star("N", size)))
        run_one("N")
        with django_assert_max_num_queries(60) as captured:
            advance(dag)
        counts.append(len(captured))
        while (attempt := claim_one()) is not None:
            end(attempt)
        advance(dag)

    assert counts[0] == counts[1]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_engines_at_once_submit_each_node_once_and_leave_none(
    submit, make_site: Callable[..., object]
) -> None:
    make_site("site-b", max_matches=9)
    parents = [f"N{number}" for number in range(5)]
    lines = [*(f"JOB {name} step.sub" for name in (*parents, "Z")), f"PARENT {' '.join(parents)}"]
    dags = [submit("\n".join(lines) + " CHILD Z") for _ in range(6)]
    match(dags[0])
    for site in ("site-a", "site-b"):
        while (attempt := claim_one(site)) is not None:
            end(attempt)
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        try:
            engine.run_cycle(NOW)
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [states(dag)["Z"] for dag in dags] == ["submitted"] * 6
    assert Job.objects.filter(name="Z").count() == 6
    for dag in dags:
        assert_log_agrees(dag)

"""Provisioners: nothing else begins before their job says that it is ready."""

from __future__ import annotations

import pytest

from tests.wms.dags.driving import (
    PILOT,
    advance,
    assert_log_agrees,
    claim_of,
    end,
    match,
    run_one,
    states,
)
from wms.core.models import InboxEntry
from wms.dags.models import Dag
from wms.jobs.attempts.progress import note_attributes
from wms.jobs.attempts.rescheduling import reschedule_jobs
from wms.jobs.models import Attempt, Job, JobEvent

TEXT = (
    "PROVISIONER P step.sub\nSERVICE S step.sub\nJOB A step.sub\nJOB B step.sub\nPARENT A CHILD B"
)
READY = {"ProvisionerState": 2}


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site("site-a")


def say(attempt: Attempt, **attributes: int | str) -> None:
    told = {(attempt.job_id, attempt.number): attributes}
    note_attributes(told, pilot_id=attempt.pilot_id, actor=PILOT)


def settle(dag: Dag) -> Dag:
    """A round for what was told, and one for what that told the engine itself."""
    advance(dag)
    return advance(dag)


def test_the_other_nodes_begin_once_the_job_says_that_it_is_ready(submit) -> None:
    dag = match(submit(TEXT))
    provisioner = claim_of("P")
    say(provisioner, ProvisionerState=1, Other=2)
    settle(dag)
    assert states(dag) == {"P": "submitted", "S": "waiting", "A": "waiting", "B": "waiting"}

    say(provisioner, ProvisionerState=2)
    settle(dag)

    assert states(dag) == {"P": "submitted", "S": "submitted", "A": "submitted", "B": "waiting"}
    end(provisioner)
    run_one("A")
    settle(dag)
    run_one("B")
    settle(dag)
    assert states(dag)["B"] == "done"
    assert dag.state == "completed"
    assert_log_agrees(dag)


def test_one_that_says_so_and_ends_at_once_was_ready(submit) -> None:
    dag = match(submit(TEXT))
    provisioner = claim_of("P")
    say(provisioner, **READY)
    end(provisioner)

    settle(dag)

    assert states(dag) == {"P": "done", "S": "submitted", "A": "submitted", "B": "waiting"}


@pytest.mark.parametrize("exit_code", [0, 3])
def test_one_that_ends_without_a_word_ends_the_dag(submit, exit_code: int) -> None:
    dag = match(submit(TEXT))
    run_one("P", exit_code)

    settle(dag)

    assert states(dag)["P"] == ("failed" if exit_code else "done")
    assert dag.state == "failed"
    assert "provisioner P" in dag.state_reason


def test_what_a_lost_attempt_says_counts_for_nothing(submit) -> None:
    dag = match(submit(TEXT))
    first = claim_of("P")
    reschedule_jobs(
        [first.job_id], outcome=Attempt.Outcome.LOST, actor=PILOT, reason="its pilot is gone"
    )
    say(first, **READY)
    settle(dag)
    assert states(dag)["A"] == "waiting"

    say(claim_of("P"), **READY)
    settle(dag)
    assert states(dag)["A"] == "submitted"


def test_one_of_several_jobs_is_enough(submit) -> None:
    several = "executable = step.sh\nqueue 2\n"
    dag = match(submit("PROVISIONER P two.sub\nJOB A step.sub", files={"two.sub": several}))
    second = Job.objects.get(process=1)
    while (attempt := claim_of("P")).job_id != second.pk:
        continue
    say(attempt, **READY)

    settle(dag)

    assert states(dag)["A"] == "submitted"


def test_what_any_other_job_says_begins_nothing(submit) -> None:
    dag = match(submit("SERVICE S step.sub\nJOB A step.sub\nJOB B step.sub\nPARENT A CHILD B"))
    for name in ("S", "A"):
        attempt = claim_of(name)
        say(attempt, **READY)

    settle(dag)

    assert states(dag) == {"S": "submitted", "A": "submitted", "B": "waiting"}
    assert not InboxEntry.objects.filter(key=dag.pk).exists()
    assert JobEvent.objects.filter(event="update").count() == 2

"""What becomes of jobs by their own expressions, in the queue and at their ends."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests import factories
from tests.wms.jobs.test_attempts import PILOT, end, history, job, send_output, take
from wms.core.actors import Actor
from wms.core.loops import last_report
from wms.jobs import periodic_expressions
from wms.jobs.attempts.progress import start_attempt
from wms.jobs.models import Attempt, Job, JobEvent, WorkspaceFile
from wms.jobs.models.descriptions import DEFAULTS
from wms.jobs.operations import hold_jobs
from wms.jobs.tasks import PERIODIC, evaluate
from wms.taskqueues.models import WaitingJob

__all__ = ["job"]

SYSTEM = Actor.system("test")


def having(job: Job, **values: Any) -> Job:
    described = {name: value for name, value in values.items() if name in DEFAULTS}
    Job.objects.filter(pk=job.pk).update(**{n: v for n, v in values.items() if n not in DEFAULTS})
    factories.describe(Job.objects.filter(pk=job.pk), **described)
    job.refresh_from_db()
    return job


def state(job: Job) -> tuple[str, str]:
    job.refresh_from_db()
    return job.state, job.state_reason


def test_a_payload_that_failed_is_run_again_until_its_retries_are_used_up(job: Job) -> None:
    having(job, max_retries=2, max_attempts=1)

    for _ in range(2):
        end(take(), exit_code=3)
        assert state(job)[0] == "waiting"
    end(take(), exit_code=3)

    assert (state(job)[0], job.state_cause) == ("failed", "payload")
    assert (job.payload_failures, job.attempt_number) == (2, 3)
    assert history(job).count("reschedule") == 2
    events = JobEvent.objects.filter(job=job, event="reschedule").order_by("pk")
    assert [event.cause for event in events] == ["payload", "payload"]
    assert "2 of 2" in events[1].reason
    assert not WaitingJob.objects.exists()


@pytest.mark.parametrize("until", ["4", "ExitCode == 4", "NumJobCompletions >= 1"])
def test_retries_end_when_the_expression_says_so(job: Job, until: str) -> None:
    having(job, max_retries=5, periodic={"retry_until": until})

    end(take(), exit_code=4)

    assert state(job)[0] == "failed"


@pytest.mark.parametrize("until", ["ExitCode == 4", "4", "9" * 5000])
def test_retries_go_on_while_the_expression_is_not_true(job: Job, until: str) -> None:
    having(job, max_retries=5, periodic={"retry_until": until})

    end(take(), exit_code=3)

    assert state(job)[0] == "waiting"


def test_a_success_exit_code_of_its_own_counts_as_success_and_zero_does_not(job: Job) -> None:
    having(job, periodic={"success_exit_code": "7"}, output_files=[])

    end(take(), exit_code=7)

    assert state(job)[0] == "done"
    assert JobEvent.objects.get(job=job, event="complete").facts["exit_code"] == 7


def test_on_exit_hold_holds_a_payload_that_ended(job: Job) -> None:
    having(job, periodic={"on_exit_hold": "ExitBySignal || ExitCode > 100"}, output_files=[])

    end(take(), exit_code=101)

    assert (state(job)[0], job.state_cause) == ("held", "expression")
    assert "on_exit_hold" in job.state_reason
    assert Attempt.objects.get().exit_code == 101
    assert job.hold_count == 1


def test_on_exit_remove_sends_even_a_success_back_into_the_queue(job: Job) -> None:
    having(job, periodic={"on_exit_remove": "NumJobCompletions >= 2"})
    attempt = take()
    send_output(attempt)

    end(attempt)

    assert state(job) == ("waiting", "on_exit_remove is false")
    assert not WorkspaceFile.objects.exists()
    attempt = take()
    send_output(attempt)
    end(attempt)
    assert state(job)[0] == "done"


@pytest.mark.parametrize("remove", ["true", "ExitCode == 3"])
def test_on_exit_remove_ends_retries_when_it_is_true(job: Job, remove: str) -> None:
    having(job, max_retries=5, periodic={"on_exit_remove": remove})

    end(take(), exit_code=3)

    assert state(job)[0] == "failed"


def test_on_exit_remove_does_not_keep_a_job_whose_retries_are_over(job: Job) -> None:
    having(job, max_retries=1, periodic={"on_exit_remove": "false"}, output_files=[])

    end(take(), exit_code=3)
    assert state(job)[0] == "waiting"
    end(take(), exit_code=3)

    assert state(job)[0] == "failed"


@pytest.mark.parametrize(
    "given", [{"max_retries": 3}, {"periodic": {"retry_until": "9", "on_exit_remove": "false"}}]
)
def test_on_exit_remove_does_not_keep_a_success_where_there_are_retries(
    job: Job, given: dict[str, Any]
) -> None:
    having(job, **{"periodic": {"on_exit_remove": "false"}, "output_files": [], **given})

    end(take(), exit_code=0)

    assert state(job)[0] == "done"


def test_what_the_pilot_stopped_has_no_signal_of_its_own(job: Job) -> None:
    end(take(), exit_code=None, signal=15, reason="wall clock limit of 5 s")

    facts = JobEvent.objects.get(job=job, event="fail").facts
    assert "signal" not in facts
    assert "exit_code" not in facts
    assert Attempt.objects.get().signal == 15


@pytest.mark.parametrize(
    "expression",
    [
        "CurrentTime - EnteredCurrentStatus > 60",
        "JobStatus == 2 && NumJobStarts == 1",
        "Limit < 5",
        'RequestMemory < 100 && Owner == "alice"',
    ],
)
def test_a_job_whose_periodic_hold_is_true_is_held_with_the_expression(
    job: Job, expression: str
) -> None:
    having(job, periodic={"hold": expression}, attributes={"Limit": "2 + 2"})
    take()
    start_attempt(job.pk, 1, pilot_id=1, actor=PILOT)

    report = periodic_expressions.run_cycle(timezone.now() + timedelta(minutes=2))

    assert state(job) == ("held", f"periodic_hold is true: {expression}")
    assert (report["looked_at"], report["held"], report["after"]) == (1, 1, 0)


@pytest.mark.parametrize(
    "expression", ["JobStatus == 5", "Nothing > 3", "1", "error", "time() < 0", "a = ", "X"]
)
def test_what_is_not_true_decides_nothing(job: Job, expression: str) -> None:
    having(job, periodic={"hold": expression, "remove": expression}, attributes={"X": "X"})

    periodic_expressions.run_cycle(timezone.now())

    assert state(job)[0] == "waiting"


def test_a_held_job_is_released_by_its_own_expression_and_no_other_one(job: Job) -> None:
    having(job, periodic={"hold": "true", "release": "NumHolds < 2 && HoldReason =!= undefined"})

    assert periodic_expressions.run_cycle(timezone.now())["held"] == 1
    assert periodic_expressions.run_cycle(timezone.now())["released"] == 1

    assert state(job) == ("waiting", "periodic_release is true: " + job.periodic["release"])
    assert periodic_expressions.run_cycle(timezone.now())["held"] == 1
    assert periodic_expressions.run_cycle(timezone.now())["released"] == 0


def test_a_job_whose_periodic_remove_is_true_is_killed_wherever_it_is(job: Job) -> None:
    having(job, periodic={"remove": "JobStatus == 5"})
    hold_jobs([job.pk], actor=SYSTEM, reason="for a while")

    periodic_expressions.run_cycle(timezone.now())

    assert (state(job)[0], job.state_cause) == ("killed", "expression")
    assert "periodic_remove" in job.state_reason
    assert "JobStatus == 5" in job.state_reason


def test_jobs_that_have_ended_or_say_nothing_are_not_looked_at(job: Job) -> None:
    assert periodic_expressions.run_cycle(timezone.now())["looked_at"] == 0
    having(job, periodic={"hold": "true"})
    end(take(), exit_code=1)

    assert periodic_expressions.run_cycle(timezone.now())["looked_at"] == 0


def test_a_cycle_without_time_goes_on_behind_the_last_job(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    having(job, periodic={"hold": "false"})
    factories.stored_job(
        name="b", owner=job.owner, workspace=job.workspace, needs=job.needs, wall_limit_s=1,
        executable="x", periodic={"hold": "true"},
    )  # fmt: skip
    monkeypatch.setattr(periodic_expressions, "_BATCH", 1)
    monkeypatch.setattr(periodic_expressions, "LIMIT_S", -1.0)

    evaluate()
    assert last_report(PERIODIC.name)["after"] == job.pk
    evaluate()

    assert last_report(PERIODIC.name)["held"] == 1


@pytest.mark.slow
def test_thousands_of_jobs_are_looked_at_with_few_queries(
    job: Job, django_assert_max_num_queries: Any
) -> None:
    Job.objects.bulk_create(
        factories.job_row(
            name="b", owner=job.owner, workspace=job.workspace, needs=job.needs, wall_limit_s=1,
            executable="x", state="waiting", periodic={"hold": "CurrentTime - QDate > 100000"},
        )
        for _ in range(900)
    )  # fmt: skip

    with django_assert_max_num_queries(2):
        assert periodic_expressions.run_cycle(timezone.now())["looked_at"] == 900

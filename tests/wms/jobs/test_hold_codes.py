"""Holds by durations and expressions: their causes, codes and subcodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from matching.task_queues.needs import Needs
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.models import Attempt, Job, JobEvent
from wms.jobs.operations import create_workspace, hold_jobs, submit_jobs
from wms.jobs.periodic_expressions import MOST_HOLDS, run_cycle
from wms.jobs.specs import JobSpec
from wms.jobs.states import JobCause
from wms.taskqueues.models import WaitingJob

pytestmark = pytest.mark.django_db
SYSTEM = Actor.system("test")


def submitted(owner: User, **given: Any) -> Job:
    spec = JobSpec(name="n", executable="/bin/true", needs=Needs.of("alice"), **given)
    [job_id] = submit_jobs([spec], owner=owner, workspace=create_workspace(owner, {}), actor=SYSTEM)
    return Job.objects.get(pk=job_id)


def test_a_job_that_is_with_its_pilot_for_too_long_is_held(alice: User) -> None:
    job = submitted(alice, directives={"duration_limit_s": 60})
    Job.objects.update(state="running", attempt_number=1)
    now = timezone.now()
    Attempt.objects.create(job=job, number=1, pilot_id=1, matched_at=now)

    run_cycle(now + timedelta(seconds=50))
    assert Job.objects.get().state == "running"
    run_cycle(now + timedelta(seconds=70))

    job = Job.objects.get()
    assert (job.state, job.state_cause) == ("held", "job_duration")
    assert JobEvent.objects.get(event="hold").facts["hold_code"] == 46


def test_an_expression_gives_reason_and_subcode_and_release_may_ask_for_them(alice: User) -> None:
    submitted(
        alice,
        periodic={
            "hold": "NumHolds == 0",
            "hold_reason": 'strcat("too ", "long")',
            "hold_subcode": "40 + 2",
            "release": "HoldReasonCode == 3 && HoldReasonSubCode == 42",
        },
    )

    run_cycle(timezone.now())
    job = Job.objects.get()
    assert (job.state, job.state_reason) == ("held", "too long")
    assert JobEvent.objects.get(event="hold").facts == {"hold_code": 3, "hold_subcode": 42}

    run_cycle(timezone.now())
    assert Job.objects.get().state == "waiting"


def test_a_job_may_begin_held(alice: User) -> None:
    job = submitted(alice, directives={"is_held": True})

    assert (job.state, job.state_cause) == ("held", "begun_held")
    assert not WaitingJob.objects.exists()


@pytest.mark.parametrize("by", ["expression", "person"])
def test_the_subcode_of_an_earlier_hold_counts_for_no_later_one(alice: User, by: str) -> None:
    job = submitted(
        alice,
        periodic={
            "hold": f"NumHolds < {2 if by == 'expression' else 1}",
            "hold_subcode": "NumHolds == 0 ? 42 : 0",
            "release": "NumHolds == 1 && HoldReasonSubCode == 42",
            "remove": "NumHolds == 2 && HoldReasonSubCode == 0",
        },
    )
    run_cycle(timezone.now())
    run_cycle(timezone.now())
    assert (Job.objects.get().state, Job.objects.get().hold_count) == ("waiting", 1)

    if by == "person":
        hold_jobs([job.pk], actor=SYSTEM, reason="x", cause=JobCause.PERSON)
    else:
        run_cycle(timezone.now())
    run_cycle(timezone.now())

    assert Job.objects.get().state == "killed"


@pytest.mark.parametrize("cause", [JobCause.CLUSTER_HELD, JobCause.DAG_HELD])
def test_a_job_that_is_held_with_others_is_not_released_by_its_expression(
    alice: User, cause: JobCause
) -> None:
    job = submitted(alice, periodic={"release": "true"})
    hold_jobs([job.pk], actor=SYSTEM, reason="x", cause=cause, is_announced=False)

    run_cycle(timezone.now())

    assert Job.objects.get().state == "held"


def test_a_job_that_goes_round_in_a_circle_stays_held(alice: User) -> None:
    job = submitted(alice, periodic={"hold": "true", "release": "true"})
    Job.objects.filter(pk=job.pk).update(hold_count=MOST_HOLDS - 2)

    found = []
    for _ in range(4):
        run_cycle(timezone.now())
        found.append(Job.objects.get().state)

    assert found == ["held", "waiting", "held", "held"]


def test_held_jobs_are_looked_at_with_few_queries(
    alice: User, django_assert_max_num_queries: Any
) -> None:
    held = [submitted(alice, periodic={"release": "HoldReasonCode == 9"}).pk for _ in range(5)]
    hold_jobs(held, actor=SYSTEM, reason="x", cause=JobCause.PERSON)

    with django_assert_max_num_queries(2):
        run_cycle(timezone.now())

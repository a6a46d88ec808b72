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
from wms.jobs.operations import create_workspace, submit_jobs
from wms.jobs.periodic_expressions import run_cycle
from wms.jobs.specs import JobSpec
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

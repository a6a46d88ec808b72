"""Messages of attempts that are over: written down, and never applied."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs import operations
from wms.jobs.attempts import ending, progress, rescheduling
from wms.jobs.attempts.ending import PayloadEnd
from wms.jobs.attempts.guard import AttemptSuperseded
from wms.jobs.models import Attempt, Job, JobEvent
from wms.jobs.specs import JobSpec
from wms.taskqueues.operations import claim

PILOT = Actor.pilot("p")


@pytest.fixture
def old(alice: User) -> Attempt:
    """An attempt that was taken for lost; the job is in its second one."""
    spec = JobSpec(name="run", executable="/bin/true", needs=Needs.of("alice"))
    operations.submit_jobs(
        [spec],
        owner=alice,
        workspace=operations.create_workspace(alice, {}),
        actor=Actor.person(alice),
    )
    attempt = take(1)
    rescheduling.reschedule_jobs_of_pilots(
        [1], outcome=Attempt.Outcome.LOST, actor=PILOT, reason="silence"
    )
    take(2)
    return attempt


def take(pilot_id: int) -> Attempt:
    claimed = claim(Resource("site-a", cpu_time_s=10**6))
    assert claimed is not None
    attempt = operations.bind_to_pilot(
        claimed, pilot_id=pilot_id, site_name="site-a", host="n", free_cores=1, actor=PILOT
    )
    assert attempt is not None
    return attempt


def say(attempt: Attempt, message: str) -> None:
    common: dict[str, Any] = {"pilot_id": attempt.pilot_id, "actor": PILOT}
    about = attempt.job_id, attempt.number
    if message == "started":
        progress.start_attempt(*about, **common)
    elif message == "ended":
        ending.end_attempt(*about, end=PayloadEnd(exit_code=0), now=timezone.now(), **common)
    else:
        ending.return_job(*about, reason="no space", **common)


@pytest.mark.parametrize("message", ["started", "ended", "not_run"])
def test_a_late_message_of_an_old_attempt_is_recorded_once_and_not_applied(
    old: Attempt, message: str
) -> None:
    before = Job.objects.values().get(), list(Attempt.objects.values())

    for _ in range(3):
        with pytest.raises(AttemptSuperseded):
            say(old, message)

    assert (Job.objects.values().get(), list(Attempt.objects.values())) == before
    late = JobEvent.objects.get(event="late")
    assert late.facts == {"attempt": 1, "message": message}
    assert late.from_state == late.to_state == "matched"

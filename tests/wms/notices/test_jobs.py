"""Notices about jobs, for owners whose descriptions ask for them by `notification`."""

from __future__ import annotations

import pytest
from django.utils import timezone

from matching.task_queues.needs import Needs
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs import lifecycle
from wms.jobs.models import Job
from wms.jobs.operations import create_workspace, hold_jobs, submit_jobs
from wms.jobs.specs import JobSpec
from wms.jobs.states import JobCause
from wms.notices.fanout import run_cycle
from wms.notices.models import Notice

SYSTEM = Actor.system("test")


def submitted(owner: User, notification: str) -> int:
    given = {"notification": notification} if notification else None
    spec = JobSpec(name="n", executable="/bin/true", needs=Needs.of("alice"), directives=given)
    [job_id] = submit_jobs([spec], owner=owner, workspace=create_workspace(owner, {}), actor=SYSTEM)
    return job_id


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("notification", "kinds"),
    [
        ("", set()),
        ("error", {"failed", "held"}),
        ("complete", {"failed"}),
        ("always", {"failed", "held"}),
    ],
)
def test_an_owner_hears_of_what_the_description_asks_for(
    alice: User, notification: str, kinds: set[str]
) -> None:
    failed, held, stopped = (submitted(alice, notification) for _ in range(3))

    lifecycle.apply("fail", [failed], actor=SYSTEM, reason="no", cause=JobCause.PAYLOAD)
    hold_jobs([held], actor=SYSTEM, reason="too long", cause=JobCause.JOB_DURATION)
    hold_jobs([stopped], actor=SYSTEM, reason="wait", cause=JobCause.PERSON)
    run_cycle(timezone.now())
    run_cycle(timezone.now())

    notices = Notice.objects.filter(user=alice)
    assert {(each.kind, each.subject_id) for each in notices} == {
        (kind, str({"failed": failed, "held": held}[kind])) for kind in kinds
    }


@pytest.mark.django_db
def test_an_owner_hears_of_a_job_that_is_done_once(alice: User) -> None:
    job_id = submitted(alice, "complete")
    Job.objects.update(state="running", attempt_number=1)

    lifecycle.apply("complete", [job_id], actor=SYSTEM, is_owner_told=True)
    run_cycle(timezone.now())

    [notice] = Notice.objects.filter(user=alice)
    assert (notice.kind, notice.subject_kind, notice.subject_id) == (
        "completed",
        "job",
        str(job_id),
    )

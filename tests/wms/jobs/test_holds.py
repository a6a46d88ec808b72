"""Holding jobs: waiting ones leave their TaskQueues, running ones are stopped and begin anew."""

from __future__ import annotations

import pytest

from tests.wms.jobs.test_attempts import PILOT, end, history, job, take
from wms.core.actors import Actor
from wms.core.models import InboxEntry
from wms.jobs.attempts.guard import AttemptSuperseded
from wms.jobs.attempts.progress import start_attempt
from wms.jobs.attempts.rescheduling import reschedule_jobs
from wms.jobs.models import Attempt, Job, JobEvent
from wms.jobs.operations import hold_jobs, release_jobs
from wms.taskqueues.models import WaitingJob

__all__ = ["job"]

SYSTEM = Actor.system("test")


def hold(job: Job, **more: bool) -> Job:
    hold_jobs([job.pk], actor=SYSTEM, reason="too much memory", **more)
    job.refresh_from_db()
    return job


def test_a_waiting_job_leaves_its_task_queue_until_it_is_released(job: Job) -> None:
    hold(job)

    assert job.state == "held"
    assert not WaitingJob.objects.exists()
    release_jobs([job.pk], actor=SYSTEM)
    assert WaitingJob.objects.get().job_id == job.pk


def test_a_running_payload_is_stopped_and_its_attempt_is_closed(job: Job) -> None:
    attempt = take()
    start_attempt(job.pk, 1, pilot_id=1, actor=PILOT)

    hold(job)

    attempt.refresh_from_db()
    assert (job.state, attempt.outcome, attempt.reason) == ("held", "killed", "too much memory")
    with pytest.raises(AttemptSuperseded):
        end(attempt)


def test_a_payload_that_had_not_begun_counts_as_not_run(job: Job) -> None:
    take()

    hold(job)

    assert Attempt.objects.get().outcome == "not_run"


def test_a_held_job_runs_again_after_its_release_and_has_all_its_attempts_left(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(max_attempts=1)
    take()
    hold(job)

    release_jobs([job.pk], actor=SYSTEM)
    take(pilot_id=2)

    job.refresh_from_db()
    assert (job.state, job.attempt_number, job.max_attempts) == ("matched", 2, 2)
    reschedule_jobs([job.pk], outcome=Attempt.Outcome.LOST, actor=PILOT, reason="lost")
    job.refresh_from_db()
    assert job.state == "failed"


def test_a_hold_is_told_to_whoever_submitted_the_job_and_counted(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(topic="dag-jobs", topic_key=7)

    hold(job)

    entry = InboxEntry.objects.get(topic="dag-jobs")
    assert JobEvent.objects.get(pk=entry.subject_id).event == "hold"
    assert job.hold_count == 1


def test_a_hold_of_the_whole_dag_is_neither_told_nor_counted(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(topic="dag-jobs", topic_key=7)

    hold(job, is_announced=False)

    assert not InboxEntry.objects.filter(topic="dag-jobs").exists()
    assert (job.state, job.hold_count) == ("held", 0)


def test_a_job_that_has_ended_is_not_held(job: Job) -> None:
    attempt = take()
    end(attempt, exit_code=1)

    applied = hold_jobs([job.pk], actor=SYSTEM, reason="late")

    assert applied.skipped == [job.pk]
    assert history(job)[-1] == "fail"

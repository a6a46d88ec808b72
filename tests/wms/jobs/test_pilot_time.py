"""Jobs that may run longer than their pilots: they fail, or go where there is more time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource
from tests import factories
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs import operations
from wms.jobs.attempts.checkpoints import checkpoint_blobs, keep_checkpoint
from wms.jobs.attempts.ending import PayloadEnd, end_attempt
from wms.jobs.attempts.progress import add_attempt_file
from wms.jobs.attempts.rescheduling import reschedule_jobs
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Attempt, AttemptFile, Job
from wms.jobs.specs import JobSpec
from wms.jobs.states import JobCause
from wms.sites.downtimes.models import Downtime
from wms.sites.models import Queue, Site
from wms.taskqueues.operations import claim

PILOT = Actor.pilot("p")
HOUR_S = 3600
REASON = "the job may run for 36000 s, and its pilot had 3500 s for it"


@pytest.fixture
def make_job(alice: User) -> Callable[..., Job]:
    def make(
        wall_limit_s: int = 10 * HOUR_S,
        max_retries: int = 0,
        directives: dict[str, Any] | None = None,
        **needs: Any,
    ) -> Job:
        spec = JobSpec(
            name="run",
            executable="/bin/true",
            needs=Needs.of("alice", **needs),
            wall_limit_s=wall_limit_s,
            max_retries=max_retries,
            directives=directives,
        )
        workspace = operations.create_workspace(alice, {})
        [pk] = operations.submit_jobs(
            [spec], owner=alice, workspace=workspace, actor=Actor.person(alice)
        )
        return Job.objects.get(pk=pk)

    return make


@pytest.fixture
def queue() -> Callable[..., Queue]:
    def make(hours: int, **values: Any) -> Queue:
        site, _ = Site.objects.get_or_create(name=values.pop("site", "UW"))
        return Queue.objects.create(
            site=site, name=f"of-{hours}-h", element="host", wall_time_s=hours * HOUR_S, **values
        )

    return make


def take(time_s: int, site: str = "UW") -> Attempt | None:
    claimed = claim(Resource(site, cpu_time_s=time_s))
    if claimed is None:
        return None
    return operations.bind_to_pilot(
        claimed, pilot_id=1, site_name=site, host="wn1", free_cores=1, actor=PILOT
    )


def run_out_of_time(time_s: int, site: str = "UW") -> Attempt:
    """An attempt that its pilot has stopped because its own time was over, told twice."""
    attempt = take(time_s, site)
    assert attempt is not None
    out_of_time(attempt, time_s)
    return attempt


def out_of_time(attempt: Attempt, time_s: int) -> None:
    end = PayloadEnd(
        exit_code=None, signal=15, wall_s=float(time_s), reason=REASON, stopped_by="pilot_time"
    )
    for _ in range(2):
        end_attempt(
            attempt.job_id,
            attempt.number,
            pilot_id=1,
            end=end,
            actor=PILOT,
            now=timezone.now(),
        )
    attempt.refresh_from_db()


def test_a_job_longer_than_all_pilots_fails_at_once_and_is_not_run_again(make_job, queue) -> None:
    queue(1)
    job = make_job(max_retries=3)

    attempt = run_out_of_time(3500)

    job.refresh_from_db()
    assert (job.state, job.state_reason, job.attempt_number) == ("failed", REASON, 1)
    assert (attempt.outcome, attempt.stopped_by) == ("failed", "pilot_time")


def test_a_job_runs_again_at_once_and_only_where_there_is_as_much_time_as_it_may_take(
    make_job, queue, settings
) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "RESCHEDULE_PAUSES_S": [600]}
    queue(1)
    queue(48)
    job = make_job()

    attempt = run_out_of_time(3500)

    job.refresh_from_db()
    assert (job.state, job.not_before) == ("waiting", None)
    assert (job.state_cause, job.needs["cpu_time_s"]) == ("pilot_time", 36_000)
    assert (attempt.outcome, attempt.stopped_by) == ("lost", "pilot_time")
    assert take(35_999) is None
    assert take(36_000) is not None


def test_a_job_that_may_run_longer_than_any_pilot_gets_the_longest_and_then_fails(
    make_job, queue
) -> None:
    queue(1)
    queue(5)
    job = make_job()

    run_out_of_time(3500)

    assert take(3600) is None
    job.refresh_from_db()
    assert job.needs["cpu_time_s"] == int((5 * HOUR_S - 60) * 0.9)
    run_out_of_time(5 * HOUR_S - 60)
    job.refresh_from_db()
    assert (job.state, job.attempt_number) == ("failed", 2)


def test_the_rest_of_an_old_pilot_is_no_measure_of_its_queue(make_job, queue) -> None:
    queue(12)
    job = make_job()

    run_out_of_time(600)

    job.refresh_from_db()
    assert job.state == "waiting"
    assert job.needs["cpu_time_s"] == 36_000


@pytest.mark.parametrize("why", ["switched off", "in downtime", "another site's", "too small"])
def test_a_longer_queue_that_is_not_open_to_the_job_does_not_count(
    make_job, queue, why: str
) -> None:
    queue(1)
    values = {"site": "NWU"} if why == "another site's" else {}
    longer = queue(48, memory_mb=100 if why == "too small" else 4000, **values)
    if why == "switched off":
        Queue.objects.filter(pk=longer.pk).update(is_enabled=False)
    if why == "in downtime":
        now = timezone.now()
        Downtime.objects.create(
            site=longer.site, start=now - timedelta(hours=1), end=now + timedelta(hours=1),
            reason="repair", author="olga",
        )  # fmt: skip
    job = make_job(sites=["UW"] if why == "another site's" else [], memory_mb=0)
    factories.describe(Job.objects.filter(pk=job.pk), needs={**job.needs, "memory_mb": 2000})

    run_out_of_time(3500)

    job.refresh_from_db()
    assert job.state == "failed"


@pytest.fixture
def saved(make_job, queue) -> Job:
    """A job that waits again with a checkpoint, since the time of its pilot was over."""
    queue(1)
    queue(48)
    job = make_job(directives={"checkpoint_exit_code": 85, "checkpoint_files": ["state"]})
    attempt = take(3500)
    assert attempt is not None
    send_checkpoint(attempt)
    keep_checkpoint(job.pk, 1, pilot_id=1, files=["state"], actor=PILOT)
    out_of_time(attempt, 3500)
    job.refresh_from_db()
    return job


def send_checkpoint(attempt: Attempt) -> None:
    blob = store_bytes(b"step 3")
    add_attempt_file(attempt, kind=AttemptFile.Kind.NEW_CHECKPOINT, path="state", blob=blob)


def checkpoint_files() -> int:
    return AttemptFile.objects.filter(kind__in=("checkpoint", "incoming")).count()


def test_a_job_with_a_checkpoint_goes_on_where_there_is_as_little_time(saved: Job) -> None:
    assert (saved.state, saved.state_cause) == ("waiting", "not_run")
    assert (saved.needs["cpu_time_s"], saved.max_attempts) == (Needs.of("alice").cpu_time_s, 6)
    assert list(checkpoint_blobs(saved)) == ["state"]
    assert take(3500) is not None


def test_without_a_checkpoint_the_job_asks_for_more_time(make_job, queue) -> None:
    queue(1)
    queue(48)
    job = make_job(directives={"checkpoint_exit_code": 85, "checkpoint_files": ["state"]})

    run_out_of_time(3500)

    job.refresh_from_db()
    assert (job.state_cause, job.needs["cpu_time_s"]) == ("pilot_time", 36_000)


def test_a_killed_job_keeps_no_checkpoint(saved: Job) -> None:
    attempt = take(3500)
    assert attempt is not None
    send_checkpoint(attempt)
    assert checkpoint_files() == 2

    operations.kill_jobs([saved.pk], actor=PILOT, reason="enough")

    assert checkpoint_files() == 0


def test_a_job_whose_attempts_are_used_up_keeps_no_checkpoint(saved: Job) -> None:
    Job.objects.update(max_attempts=2)
    attempt = take(3500)
    assert attempt is not None
    send_checkpoint(attempt)

    reschedule_jobs([saved.pk], outcome=Attempt.Outcome.LOST, actor=PILOT, reason="gone")

    saved.refresh_from_db()
    assert (saved.state, checkpoint_files()) == ("failed", 0)


def test_a_job_that_cannot_be_run_keeps_no_checkpoint(saved: Job) -> None:
    attempt = take(3500)
    assert attempt is not None

    operations.fail_unrunnable(attempt, actor=PILOT, reason="no input", cause=JobCause.INPUTS)

    assert checkpoint_files() == 0


def test_a_held_job_keeps_its_checkpoint(saved: Job) -> None:
    operations.hold_jobs([saved.pk], actor=PILOT, reason="look")

    assert checkpoint_files() == 1


def test_more_time_is_asked_for_as_work_in_the_power_of_the_queue_that_has_it(
    make_job, queue
) -> None:
    queue(1)
    queue(5, cpu_power=0.5)
    job = make_job(wall_limit_s=2 * HOUR_S)

    run_out_of_time(3500)

    job.refresh_from_db()
    # Two hours of those cores are the work of one hour of a core of power 1.
    assert job.needs["cpu_time_s"] == HOUR_S

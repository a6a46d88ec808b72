"""What follows when a pilot loses a job: pauses, other places, other policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs import operations
from wms.jobs.attempts import ending, rescheduling
from wms.jobs.attempts.ending import PayloadEnd
from wms.jobs.models import Attempt, Job, JobEvent
from wms.jobs.specs import JobSpec
from wms.sites.models import Site
from wms.taskqueues.models import WaitingJob
from wms.taskqueues.operations import claim
from wms.taskqueues.waiting import ClaimingHost

PILOT = Actor.pilot("p")
LOST = Attempt.Outcome.LOST


@pytest.fixture
def with_settings(settings: Any) -> Callable[..., None]:
    def change(**changes: object) -> None:
        settings.PILOTAGE = {**settings.PILOTAGE, **changes}

    return change


@pytest.fixture
def make_job(alice: User) -> Callable[..., Job]:
    def make(max_attempts: int = 5, max_retries: int = 0, **needs: Any) -> Job:
        spec = JobSpec(
            name="run",
            executable="/bin/true",
            needs=Needs.of("alice", **needs),
            max_attempts=max_attempts,
            max_retries=max_retries,
        )
        workspace = operations.create_workspace(alice, {})
        [pk] = operations.submit_jobs(
            [spec], owner=alice, workspace=workspace, actor=Actor.person(alice)
        )
        return Job.objects.get(pk=pk)

    return make


def take(site: str = "site-a", host: str = "wn1", pilot_id: int = 1) -> Attempt:
    claimed = claim(Resource(site, cpu_time_s=10**6))
    assert claimed is not None
    attempt = operations.bind_to_pilot(
        claimed, pilot_id=pilot_id, site_name=site, host=host, free_cores=1, actor=PILOT
    )
    assert attempt is not None
    return attempt


def lose(pilot_id: int = 1) -> None:
    rescheduling.reschedule_jobs_of_pilots(
        [pilot_id], outcome=LOST, actor=PILOT, reason="the pilot is gone"
    )


def is_in_a_task_queue(job: Job) -> bool:
    return WaitingJob.objects.filter(job_id=job.pk).exists()


def test_a_rescheduled_job_waits_again_only_after_its_pause(make_job, with_settings) -> None:
    with_settings(RESCHEDULE_PAUSES_S=[60, 180])
    job, now = make_job(), timezone.now()
    take()

    lose()
    too_early = rescheduling.requeue_jobs(now + timedelta(seconds=30))
    job.refresh_from_db()

    assert too_early == 0
    assert (job.state, is_in_a_task_queue(job)) == ("received", False)
    assert now + timedelta(seconds=60) <= job.not_before <= now + timedelta(seconds=90)

    assert rescheduling.requeue_jobs(now + timedelta(seconds=90)) == 1
    assert rescheduling.requeue_jobs(now + timedelta(seconds=90)) == 0
    job.refresh_from_db()
    assert (job.state, is_in_a_task_queue(job)) == ("waiting", True)


def test_pauses_grow_from_time_to_time(make_job, with_settings) -> None:
    with_settings(RESCHEDULE_PAUSES_S=[60, 180])
    job = make_job()

    for _ in range(3):
        take()
        lose()
        rescheduling.requeue_jobs(timezone.now() + timedelta(days=1))

    reasons = JobEvent.objects.filter(job=job, event="reschedule").order_by("pk")
    pauses = [event.reason.split()[-2] for event in reasons]
    assert pauses == ["60", "180", "180"]


def test_a_job_that_pauses_can_be_killed_and_held_and_is_not_requeued_then(
    make_job, with_settings
) -> None:
    with_settings(RESCHEDULE_PAUSES_S=[60])
    killed, held = make_job(), make_job()
    take(pilot_id=1)
    take(pilot_id=1)
    lose()

    operations.kill_jobs([killed.pk], actor=PILOT, reason="no")
    operations.hold_jobs([held.pk], actor=PILOT, reason="wait")

    assert rescheduling.requeue_jobs(timezone.now() + timedelta(days=1)) == 0
    assert set(Job.objects.values_list("state", flat=True)) == {"killed", "held"}
    assert not WaitingJob.objects.exists()


def test_after_all_its_attempts_a_job_fails(make_job) -> None:
    job = make_job(max_attempts=2)

    for _ in range(2):
        take()
        lose()

    job.refresh_from_db()
    assert (job.state, job.attempt_number) == ("failed", 2)


def end(attempt: Attempt, **told: Any) -> None:
    payload = PayloadEnd(exit_code=None, signal=15, wall_s=5.0, **told)
    ending.end_attempt(
        attempt.job_id,
        attempt.number,
        pilot_id=attempt.pilot_id,
        end=payload,
        actor=PILOT,
        now=timezone.now(),
    )


def end_badly(attempt: Attempt) -> None:
    ending.end_attempt(
        attempt.job_id,
        attempt.number,
        pilot_id=attempt.pilot_id,
        end=PayloadEnd(exit_code=1, wall_s=0.1),
        actor=PILOT,
        now=timezone.now(),
    )


def test_preemption_costs_no_attempt_and_no_pause_however_often(make_job, with_settings) -> None:
    with_settings(RESCHEDULE_PAUSES_S=[60])
    job = make_job(max_attempts=1)

    for _ in range(3):
        attempt = take()
        end(attempt, stopped_by="preemption", reason="SIGTERM")
        end(attempt, stopped_by="preemption", reason="SIGTERM")

    job.refresh_from_db()
    assert (job.state, job.attempt_number, job.max_attempts) == ("waiting", 3, 4)
    assert (job.state_cause, "SIGTERM" in job.state_reason) == ("preempted", True)
    kept = Attempt.objects.first()
    assert kept is not None
    assert (kept.outcome, kept.stopped_by, kept.wall_s) == ("lost", "preemption", 5.0)


def test_what_its_pilot_stopped_is_rescheduled_and_costs_an_attempt(make_job) -> None:
    job = make_job(max_attempts=1)

    end(take(), stopped_by="pilot", reason="the slot ends")

    job.refresh_from_db()
    assert (job.state, job.state_cause) == ("failed", "not_run")
    assert Attempt.objects.get().stopped_by == "pilot"


def test_what_the_watchdog_stopped_fails_with_its_words(make_job) -> None:
    job = make_job()

    reason = "memory over its limit: 3000 MB of 2000 MB"

    end(take(), stopped_by="watchdog", reason=reason)

    job.refresh_from_db()
    assert (job.state, job.state_cause, job.state_reason) == ("failed", "payload", reason)
    assert Attempt.objects.get().stopped_by == "watchdog"


@pytest.mark.parametrize(("policy", "state"), [("reschedule", "waiting"), ("fail", "failed")])
def test_stalled_jobs_are_rescheduled_or_failed_by_policy(
    make_job, with_settings, policy: str, state: str
) -> None:
    with_settings(STALLED_JOBS=policy)
    job = make_job()
    attempt = take()
    rescheduling.stall_jobs_of_pilots([attempt.pilot_id], actor=PILOT, reason="silence")

    rescheduling.give_up_jobs_of_pilots([attempt.pilot_id], actor=PILOT, reason="silence")

    job.refresh_from_db()
    attempt.refresh_from_db()
    assert (job.state, attempt.outcome) == (state, "lost")


def test_a_site_that_lost_a_job_is_avoided_where_another_one_is_open(
    make_job, make_site, with_settings
) -> None:
    with_settings(RESCHEDULE_AVOIDS="site")
    make_site("site-a")
    make_site("site-b")
    job = make_job()
    take("site-a")

    lose()

    job.refresh_from_db()
    assert job.needs["banned_sites"] == ["site-a"]
    assert claim(Resource("site-a", cpu_time_s=10**6)) is None
    assert claim(Resource("site-b", cpu_time_s=10**6)) is not None


def test_the_only_open_site_is_not_avoided(make_job, make_site, with_settings) -> None:
    with_settings(RESCHEDULE_AVOIDS="site")
    make_site("site-a")
    make_site("site-b")
    Site.objects.filter(name="site-b").update(is_enabled=False)
    job = make_job()
    take("site-a")

    lose()

    job.refresh_from_db()
    assert job.needs["banned_sites"] == []


@pytest.mark.parametrize(
    ("avoids", "expected"), [("host", ["wn1"]), ("site", ["wn1"]), ("nothing", [])]
)
def test_a_host_that_lost_a_job_is_avoided_as_the_settings_want(
    make_job, with_settings, avoids: str, expected: list[str]
) -> None:
    with_settings(RESCHEDULE_AVOIDS=avoids)
    job = make_job()
    take(host="wn1")

    lose()

    job.refresh_from_db()
    assert job.avoided_hosts == expected
    assert WaitingJob.objects.get().avoided_hosts == expected


def test_preemption_is_no_reason_to_avoid_a_host(make_job) -> None:
    job = make_job()

    end(take(host="wn1"), stopped_by="preemption", reason="SIGTERM")

    job.refresh_from_db()
    assert job.avoided_hosts == []


def test_a_job_that_was_held_after_a_failure_still_avoids_the_host(make_job) -> None:
    job = make_job()
    take(host="wn1")
    lose()

    operations.hold_jobs([job.pk], actor=PILOT, reason="wait")
    operations.release_jobs([job.pk], actor=PILOT)

    assert WaitingJob.objects.get().avoided_hosts == ["wn1"]


HERE = ClaimingHost("wn1", patience_s=3600)
THERE = ClaimingHost("wn2", patience_s=3600)


def claimed_by(taker: ClaimingHost) -> int | None:
    found = claim(Resource("site-a", cpu_time_s=10**6), taker=taker)
    return found.job_id if found else None


def test_a_payload_that_is_run_again_is_left_to_another_host(make_job) -> None:
    job = make_job(max_retries=1)
    end_badly(take(host="wn1"))

    assert claimed_by(HERE) is None
    assert claimed_by(THERE) == job.pk


def test_after_its_patience_a_job_is_given_to_the_host_that_failed_it(make_job) -> None:
    job = make_job(max_retries=1)
    end_badly(take(host="wn1"))
    WaitingJob.objects.update(enqueued_at=timezone.now() - timedelta(hours=2))

    assert claimed_by(replace(HERE, takes_retries=False)) is None
    assert claimed_by(HERE) == job.pk


def test_a_host_is_given_the_jobs_behind_those_that_have_failed_there(make_job) -> None:
    for _ in range(15):
        make_job(max_retries=1)
    for attempt in [take(host="wn1") for _ in range(15)]:
        end_badly(attempt)
    fresh = make_job(max_retries=1)

    assert claimed_by(HERE) == fresh.pk
    assert claimed_by(HERE) is None
    assert claimed_by(replace(THERE, takes_retries=False)) is None
    assert claimed_by(THERE) is not None

"""Jobs that may run longer than their pilots: they fail, or go where there is more time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs import operations
from wms.jobs.attempts import PayloadEnd, end_attempt
from wms.jobs.models import Attempt, Job
from wms.jobs.specs import JobSpec
from wms.sites.models import Downtime, Queue, Site
from wms.taskqueues.operations import claim

PILOT = Actor.pilot("p")
HOUR_S = 3600
REASON = "the job may run for 36000 s, and its pilot had 3500 s for it"


@pytest.fixture
def make_job(alice: User) -> Callable[..., Job]:
    def make(wall_limit_s: int = 10 * HOUR_S, max_retries: int = 0, **needs: Any) -> Job:
        spec = JobSpec(
            name="run",
            executable="/bin/true",
            needs=Needs.of("alice", **needs),
            wall_limit_s=wall_limit_s,
            max_retries=max_retries,
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
    return attempt


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
    Job.objects.filter(pk=job.pk).update(needs={**job.needs, "memory_mb": 2000})

    run_out_of_time(3500)

    job.refresh_from_db()
    assert job.state == "failed"

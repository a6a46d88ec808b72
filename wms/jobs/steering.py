"""What people do with single jobs: end them, and ask for what they print."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.conf import conf
from wms.core.errors import Conflict, NotFound, ReasonRequired
from wms.jobs import services
from wms.jobs.models import Attempt, Job
from wms.jobs.policy import require_steering

#: An answer to a heartbeat may be lost: the wish stands in so many of them.
_BEATS_ASKED = 4


def steerable_job(job_id: int, *, actor: Actor) -> Job:
    """The job, if the actor may steer it. Raises NotFound and NotPermitted."""
    job = Job.objects.filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    require_steering(actor, job)
    return job


@transaction.atomic
def kill_job(job_id: int, *, actor: Actor, reason: str) -> Job:
    """End a job for good; its pilot is told in the answer to its next heartbeat.

    A node of a DAG whose job it is counts as failed. Raises NotFound, NotPermitted, ReasonRequired,
    and Conflict when the job has ended.
    """
    job = steerable_job(job_id, actor=actor)
    if not reason.strip():
        raise ReasonRequired("kill")
    if not services.kill_jobs([job_id], actor=actor, reason=reason).changed:
        raise Conflict(f"Job {job_id} has ended: it is {job.state}.")
    record_action("kill job", target=f"job {job_id}", actor=actor, reason=reason)
    job.refresh_from_db()
    return job


@transaction.atomic
def peek_at_job(job_id: int, *, actor: Actor, now: datetime) -> Attempt:
    """Ask the pilot of a job to send at once what the payload has printed up to now.

    Raises NotFound, NotPermitted, and Conflict when no pilot has the job.
    """
    steerable_job(job_id, actor=actor)
    attempt = open_attempt(job_id)
    beats = timedelta(seconds=_BEATS_ASKED * conf().agent_heartbeat_s)
    attempt.peek_until = now + beats
    attempt.save(update_fields=["peek_until"])
    record_action("peek at job", target=f"job {job_id}", actor=actor)
    return attempt


def open_attempt(job_id: int) -> Attempt:
    """The attempt that is in a pilot now. Raises Conflict when there is none."""
    attempt = Attempt.objects.filter(job_id=job_id, outcome="").first()
    if attempt is None:
        raise Conflict(f"No pilot has job {job_id} now.")
    return attempt

"""Services for jobs: hold, release, kill, reschedule and prioritise, and peek at output.

Permitted and audited. Also one job that the actor may steer, and its open attempt.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from matching.task_queues.weighted_draws import JOB_WEIGHTS
from wms.accounting.walls import within_reach
from wms.core.actors import Actor
from wms.core.audit import record_action, record_actions
from wms.core.conf import conf
from wms.core.errors import Conflict, InvalidInput, NotFound, ReasonRequired
from wms.core.stale import refuse_stale
from wms.core.transitions import Applied
from wms.jobs import operations
from wms.jobs.attempts import rescheduling
from wms.jobs.job_changes import change_open_jobs
from wms.jobs.models import Attempt, Job, JobEvent
from wms.jobs.policy import jobs_within, require_steering
from wms.jobs.states import WITH_PILOT, JobCause

#: The greatest priority of a job; the least is 0.
MAX_PRIORITY = len(JOB_WEIGHTS) - 1

#: An answer to a heartbeat may be lost: the wish stands in so many of them.
_BEATS_ASKED = 4
_PERSON = JobCause.PERSON


def steerable_job(job_id: int, *, actor: Actor) -> Job:
    """The job, if the actor may steer it. Raises NotFound and NotPermitted."""
    job = within_reach(actor, Job.objects.filter(pk=job_id), jobs_within).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    require_steering(actor, job)
    return job


@transaction.atomic
def hold_jobs(job_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Keep jobs from running until they are released; a running payload is stopped.

    Jobs that have ended or are held are skipped. Raises NotFound, NotPermitted, ReasonRequired.
    """
    _check(job_ids, actor)
    applied = operations.hold_jobs(job_ids, actor=actor, reason=reason.strip(), cause=_PERSON)
    return _audited("hold job", applied, actor, reason)


@transaction.atomic
def release_jobs(job_ids: Collection[int], *, actor: Actor, reason: str = "") -> Applied:
    """Let held jobs wait in their TaskQueues again. Raises NotFound, NotPermitted."""
    _check(job_ids, actor)
    applied = operations.release_jobs(job_ids, actor=actor, reason=reason.strip(), cause=_PERSON)
    return _audited("release job", applied, actor, reason)


@transaction.atomic
def kill_jobs(job_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """End jobs for good; nodes of DAGs whose jobs they are count as failed.

    Jobs that have ended are skipped. Raises NotFound, NotPermitted, ReasonRequired.
    """
    _check(job_ids, actor)
    applied = operations.kill_jobs(job_ids, actor=actor, reason=reason.strip(), cause=_PERSON)
    return _audited("kill job", applied, actor, reason)


@transaction.atomic
def reschedule_jobs(job_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Take jobs from their pilots and let them wait again; it costs them none of their attempts.

    A running payload is stopped when its pilot reports next. Jobs that no pilot has are skipped.
    Raises NotFound, NotPermitted, ReasonRequired.
    """
    _check(job_ids, actor)
    if not reason.strip():
        raise ReasonRequired("reschedule")
    locked = Job.objects.filter(pk__in=job_ids).order_by("pk").select_for_update()
    with_pilot = [pk for pk, state in locked.values_list("pk", "state") if state in WITH_PILOT]
    Job.objects.filter(pk__in=with_pilot).update(max_attempts=F("max_attempts") + 1)
    applied = rescheduling.reschedule_jobs(
        with_pilot,
        outcome=Attempt.Outcome.KILLED,
        actor=actor,
        reason=reason.strip(),
        cause=_PERSON,
        is_at_fault=False,
    )
    skipped = sorted(set(job_ids).difference(applied.changed))
    return _audited("reschedule job", Applied(applied.changed, skipped), actor, reason)


@transaction.atomic
def prioritise_jobs(
    job_ids: Collection[int], *, priority: int, actor: Actor, reason: str
) -> Applied:
    """Let jobs be drawn from their TaskQueues more often or more rarely than others.

    Of jobs that a pilot has it counts if they wait again. Jobs that have ended are skipped. Raises
    NotFound, NotPermitted, ReasonRequired, InvalidInput.
    """
    _check(job_ids, actor)
    if not reason.strip():
        raise ReasonRequired("prioritise")
    if not 0 <= priority <= MAX_PRIORITY:
        raise InvalidInput.of(f"must be from 0 to {MAX_PRIORITY}", field="priority")
    old = change_open_jobs(job_ids, priority=priority, actor=actor, reason=reason.strip())
    return _audited("prioritise job", Applied(old, sorted(set(job_ids) - set(old))), actor, reason)


def _check(job_ids: Collection[int], actor: Actor) -> None:
    named = within_reach(actor, Job.objects.filter(pk__in=job_ids), jobs_within)
    jobs = {job.pk: job for job in named.only("owner_id")}
    missing = sorted(set(job_ids) - jobs.keys())
    if missing:
        raise NotFound(f"There is no job {', '.join(map(str, missing))}.")
    for job in jobs.values():
        require_steering(actor, job)


def _audited(action: str, applied: Applied, actor: Actor, reason: str) -> Applied:
    targets = [f"job {pk}" for pk in applied.changed]
    record_actions(action, targets=targets, actor=actor, reason=reason)
    return applied


@transaction.atomic
def kill_job(job_id: int, *, actor: Actor, reason: str, seen: str = "") -> Job:
    """End a job for good; its pilot is told in the answer to its next heartbeat.

    A node of a DAG whose job it is counts as failed. `seen`, where given, is the state in which the
    actor saw the job: it must have been killed in that. Raises NotFound, NotPermitted,
    ReasonRequired, and Conflict when the job has ended or was not in that state.
    """
    job = steerable_job(job_id, actor=actor)
    if not reason.strip():
        raise ReasonRequired("kill")
    if not operations.kill_jobs([job_id], actor=actor, reason=reason, cause=_PERSON).changed:
        job.refresh_from_db()
        raise Conflict(f"Job {job_id} has ended: it is {job.state}.")
    # Told by the event, not looked at before: the job's TaskQueue is locked before the job is.
    kills = JobEvent.objects.filter(job=job_id, event="kill").order_by("-pk")
    refuse_stale(seen, kills.values_list("from_state", flat=True)[0], what=f"job {job_id}")
    record_action("kill job", target=f"job {job_id}", actor=actor, reason=reason)
    job.refresh_from_db()
    return job


@transaction.atomic
def peek_at_job(job_id: int, *, actor: Actor, now: datetime, seen: str = "") -> Attempt:
    """Ask the pilot of a job to send at once what the payload has printed up to now.

    It changes nothing that others change, so `seen`, where given, is compared without a lock.
    Raises NotFound, NotPermitted, and Conflict when no pilot has the job or its state is another.
    """
    job = steerable_job(job_id, actor=actor)
    refuse_stale(seen, job.state, what=f"job {job_id}")
    attempt = open_attempt(job_id)
    beats = timedelta(seconds=_BEATS_ASKED * conf().agent_heartbeat_s)
    attempt.peek_until = now + beats
    attempt.save(update_fields=["peek_until"])
    record_action("peek at job", target=f"job {job_id}", actor=actor)
    return attempt


def open_attempt(job_id: int) -> Attempt:
    """The open attempt of a job. Raises Conflict when there is none."""
    attempt = Attempt.objects.filter(job_id=job_id, outcome="").first()
    if attempt is None:
        raise Conflict(f"No pilot has job {job_id} now.")
    return attempt

"""What can be done with jobs: submit, bind to a pilot, hold, release, kill, reschedule."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Case, F, Value, When
from django.db.models.functions import Now

from matching.needs import Needs
from wms.core.actors import Actor
from wms.core.models import User
from wms.core.transitions import Applied
from wms.jobs import lifecycle
from wms.jobs.models import Attempt, Blob, Job, Workspace, WorkspaceFile
from wms.jobs.specs import JobSpec, insert_jobs
from wms.jobs.states import QUEUED, WITH_PILOT, JobState
from wms.taskqueues import services as taskqueues


def create_workspace(owner: User, files: Mapping[str, Blob]) -> Workspace:
    """A new workspace that contains these files."""
    workspace = Workspace.objects.create(owner=owner)
    WorkspaceFile.objects.bulk_create(
        [WorkspaceFile(workspace=workspace, path=path, blob=blob) for path, blob in files.items()],
        batch_size=1000,
    )
    return workspace


@transaction.atomic
def submit_jobs(
    specs: Sequence[JobSpec],
    *,
    owner: User,
    workspace: Workspace,
    actor: Actor,
    topic: str = "",
    topic_key: int = 0,
    clusters: Sequence[int] | None = None,
) -> list[int]:
    """Store the jobs and put them into their TaskQueues; their ids in the order of the specs.

    `clusters[i]` is how many specs in a row form cluster i; without it each is its own. The end of
    each job is announced to the inbox of `topic` under `topic_key`. A few statements for every
    thousands of jobs.
    """
    ids = insert_jobs(
        specs,
        state=JobState.WAITING,
        owner=owner,
        workspace=workspace,
        topic=topic,
        topic_key=topic_key,
        clusters=clusters,
    )
    lifecycle.begin("enqueue", ids, actor=actor)
    taskqueues.enqueue(
        [
            taskqueues.Entry(pk, spec.needs, spec.priority)
            for pk, spec in zip(ids, specs, strict=True)
        ]
    )
    return ids


@transaction.atomic
def bind_to_pilot(
    claimed: taskqueues.Claimed,
    *,
    pilot_id: int,
    site_name: str,
    host: str,
    free_cores: int,
    actor: Actor,
    claim_key: str = "",
) -> Attempt | None:
    """Begin a new attempt of a job that was just claimed; None when it is waiting no longer.

    It holds what it needs of its pilot until its end, and as many of the free cores as it can use.
    """
    job_id, needs = claimed.job_id, claimed.needs
    applied = lifecycle.apply(
        "match",
        [job_id],
        actor=actor,
        facts={job_id: {"pilot_id": pilot_id, "site": site_name, "host": host}},
        attempt_number=F("attempt_number") + 1,
    )
    if not applied.changed:
        return None
    number = Job.objects.values_list("attempt_number", flat=True).get(pk=job_id)
    return Attempt.objects.create(
        job_id=job_id,
        number=number,
        pilot_id=pilot_id,
        site_name=site_name,
        host=host,
        claim_key=claim_key,
        job_type=needs.job_type,
        owner_group=needs.owner_group,
        cores=max(needs.cores, min(needs.max_cores, free_cores)),
        memory_mb=needs.memory_mb,
        gpus=needs.gpus,
    )


@transaction.atomic
def hold_jobs(
    job_ids: Collection[int],
    *,
    actor: Actor,
    reason: str,
    is_announced: bool = True,
    facts: Mapping[int, Mapping[str, Any]] | None = None,
) -> Applied:
    """Keep jobs from running until they are released; a running payload is stopped.

    It is stopped when its pilot reports next, and begins anew after the release. Whoever submitted
    the jobs hears of it and it is counted, unless it is not to be announced.
    """
    taskqueues.withdraw(job_ids)
    # All locked in id order first, as everybody does: the hold, and what is done to the attempts
    # of those that have a pilot, see them in one state.
    locked = Job.objects.filter(pk__in=job_ids).order_by("pk").select_for_update()
    with_pilot = list(locked.filter(state__in=WITH_PILOT).values_list("pk", flat=True))
    applied = lifecycle.apply(
        "hold",
        job_ids,
        actor=actor,
        reason=reason,
        facts=facts,
        is_announced=is_announced,
        hold_count=F("hold_count") + int(is_announced),
    )
    # Once more, now that the jobs are locked: one may have been rescheduled in between.
    taskqueues.withdraw(applied.changed, are_locked=True)
    _stop_attempts(with_pilot, reason=reason)
    return applied


def _stop_attempts(job_ids: Collection[int], *, reason: str) -> None:
    """Close the open attempts of jobs that are to run again later: it costs them none of theirs."""
    if not job_ids:
        return
    stopped = Attempt.objects.filter(job_id__in=job_ids, outcome="")
    Job.objects.filter(pk__in=stopped.values("job_id")).update(max_attempts=F("max_attempts") + 1)
    begun = Case(
        When(started_at=None, then=Value(Attempt.Outcome.NOT_RUN.value)),
        default=Value(Attempt.Outcome.KILLED.value),
    )
    stopped.update(outcome=begun, reason=reason, ended_at=Now())


@transaction.atomic
def release_jobs(job_ids: Collection[int], *, actor: Actor, reason: str = "") -> Applied:
    """Put held jobs back into their TaskQueues."""
    applied = lifecycle.apply("release", job_ids, actor=actor, reason=reason)
    _enqueue_again(applied.changed)
    return applied


@transaction.atomic
def kill_jobs(job_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """End jobs for good; a running payload is stopped when its pilot reports next."""
    taskqueues.withdraw(job_ids)
    applied = lifecycle.apply("kill", job_ids, actor=actor, reason=reason)
    # Once more, now that the jobs are locked: one may have been rescheduled in between.
    taskqueues.withdraw(applied.changed, are_locked=True)
    close_attempts(applied.changed, outcome=Attempt.Outcome.KILLED, reason=reason)
    return applied


@transaction.atomic
def kill_queued_jobs(job_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """End those jobs that no pilot has, and leave the others to their pilots."""
    taskqueues.withdraw(job_ids)
    queued = Job.objects.filter(pk__in=job_ids, state__in=QUEUED).order_by("pk")
    locked = list(queued.select_for_update().values_list("pk", flat=True))
    return kill_jobs(locked, actor=actor, reason=reason)


def close_attempts(job_ids: Collection[int], *, outcome: Attempt.Outcome, reason: str) -> None:
    """Mark the open attempts of these jobs as ended; a later message about them is refused."""
    Attempt.objects.filter(job_id__in=job_ids, outcome="").update(
        outcome=outcome, reason=reason, ended_at=Now()
    )


@transaction.atomic
def fail_unrunnable(attempt: Attempt, *, actor: Actor, reason: str) -> None:
    """End a job that no pilot can run, because of its own description.

    Nothing happens when the job has gone on to another attempt meanwhile.
    """
    job = Job.objects.select_for_update().get(pk=attempt.job_id)
    if job.attempt_number != attempt.number:
        return
    applied = lifecycle.apply("fail", [attempt.job_id], actor=actor, reason=reason)
    close_attempts(applied.changed, outcome=Attempt.Outcome.FAILED, reason=reason)


@transaction.atomic
def stall_jobs_of_pilots(pilot_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Mark the jobs of pilots that stopped reporting; a heartbeat brings them back."""
    return lifecycle.apply("stall", _locked_jobs(pilot_ids), actor=actor, reason=reason)


@transaction.atomic
def recover_jobs_of_pilot(pilot_id: int, *, actor: Actor) -> Applied:
    """Welcome the jobs of a pilot that reports again."""
    return lifecycle.apply("recover", _locked_jobs([pilot_id]), actor=actor)


@transaction.atomic
def reschedule_jobs_of_pilots(
    pilot_ids: Collection[int], *, outcome: Attempt.Outcome, actor: Actor, reason: str
) -> Applied:
    """Run the jobs of pilots that are gone elsewhere, or fail those whose attempts are used up."""
    return reschedule_jobs(_locked_jobs(pilot_ids), outcome=outcome, actor=actor, reason=reason)


@transaction.atomic
def reschedule_jobs(
    job_ids: Collection[int], *, outcome: Attempt.Outcome, actor: Actor, reason: str
) -> Applied:
    """Close the open attempts; jobs with attempts left wait again, the others fail."""
    # All at once and in id order, as everybody locks jobs; two groups in turn could deadlock.
    locked = Job.objects.filter(pk__in=job_ids).order_by("pk").select_for_update()
    exhausted = [job.pk for job in locked if job.attempt_number >= job.max_attempts]
    failed = lifecycle.apply(
        "fail", exhausted, actor=actor, reason=f"{reason}; all attempts are used up"
    )
    again = lifecycle.apply(
        "reschedule", sorted(set(job_ids) - set(exhausted)), actor=actor, reason=reason
    )
    close_attempts(failed.changed + again.changed, outcome=outcome, reason=reason)
    _enqueue_again(again.changed)
    return again


def _locked_jobs(pilot_ids: Collection[int]) -> list[int]:
    """The jobs that these pilots have, locked: none of them can go on to another pilot meanwhile.

    Asked again under the lock, because one may have gone on just before it.
    """
    jobs = Job.objects.filter(pk__in=_open_jobs(pilot_ids)).order_by("pk").select_for_update()
    locked = set(jobs.values_list("pk", flat=True))
    return sorted(locked.intersection(_open_jobs(pilot_ids)))


def _open_jobs(pilot_ids: Collection[int]) -> list[int]:
    return list(
        Attempt.objects.filter(pilot_id__in=pilot_ids, outcome="").values_list("job_id", flat=True)
    )


def _enqueue_again(job_ids: Collection[int]) -> None:
    waiting = Job.objects.filter(pk__in=job_ids, state=JobState.WAITING)
    taskqueues.enqueue(
        [
            taskqueues.Entry(pk, Needs.from_dict(needs), priority)
            for pk, needs, priority in waiting.values_list("pk", "needs", "priority")
        ]
    )

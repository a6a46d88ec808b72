"""Rescheduling of jobs whose pilots fell silent, ended or gave them back, or that run again.

Closes their attempts; they wait again at once or after a pause, and may avoid the place, or fail
when their attempts are used up, or, by the settings, when a silent pilot may still run them. An
attempt that was pre-empted costs none. Also marks jobs as stalled and recovered, and queues those
whose pauses are over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.db.models import F

from matching.task_queues.rescheduling import pause_after_s
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.statemachine import DatabaseTime
from wms.core.transitions import Applied
from wms.jobs import lifecycle
from wms.jobs.attempts.rerun_needs import avoid_places
from wms.jobs.models import Attempt, Job
from wms.jobs.operations import close_attempts, enqueue_again
from wms.jobs.selectors import paused_until
from wms.jobs.states import JobCause

_REQUEUER = Actor.system("rescheduled-jobs")
_REQUEUED_AT_ONCE = 1000
#: A job that was pre-empted, or given back for want of inputs, so often pays for the next time with
#: one of its attempts.
MOST_FREE_ATTEMPTS = 1000


@transaction.atomic
def stall_jobs_of_pilots(pilot_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Mark the jobs of pilots that stopped reporting; a heartbeat brings them back."""
    jobs = _locked_jobs(pilot_ids)
    return lifecycle.apply("stall", jobs, actor=actor, reason=reason, cause=JobCause.PILOT_STALLED)


@transaction.atomic
def recover_jobs_of_pilot(pilot_id: int, *, actor: Actor) -> Applied:
    """Mark the jobs of a pilot that reports again as running."""
    return lifecycle.apply("recover", _locked_jobs([pilot_id]), actor=actor)


@transaction.atomic
def reschedule_jobs_of_pilots(
    pilot_ids: Collection[int],
    *,
    outcome: Attempt.Outcome,
    actor: Actor,
    reason: str,
    cause: str = "",
    is_at_fault: bool = True,
) -> Applied:
    """Run the jobs of pilots that are gone elsewhere, or fail those whose attempts are used up."""
    return reschedule_jobs(
        _locked_jobs(pilot_ids),
        outcome=outcome,
        actor=actor,
        reason=reason,
        cause=cause,
        is_at_fault=is_at_fault,
    )


@transaction.atomic
def spare_attempts_of_pilots(pilot_ids: Collection[int]) -> None:
    """Let the open attempts of these pilots cost their jobs none of theirs: they were pre-empted.

    After very many attempts they cost one, so that no job is tried without end.
    """
    jobs = Job.objects.filter(pk__in=_locked_jobs(pilot_ids), attempt_number__lt=MOST_FREE_ATTEMPTS)
    jobs.update(max_attempts=F("max_attempts") + 1)


@transaction.atomic
def give_up_jobs_of_pilots(pilot_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Take the jobs of pilots that stayed silent from them: to run elsewhere, or failed.

    The settings say which: a job that must not run twice at the same time is rather failed, since
    a pilot that is cut off may go on with it.
    """
    lost, cause = Attempt.Outcome.LOST, JobCause.PILOT_FAILED
    if not conf().are_stalled_jobs_failed:
        return reschedule_jobs_of_pilots(
            pilot_ids, outcome=lost, actor=actor, reason=reason, cause=cause
        )
    jobs = _locked_jobs(pilot_ids)
    failed = lifecycle.apply("fail", jobs, actor=actor, reason=reason, cause=cause)
    close_attempts(failed.changed, outcome=lost, reason=reason)
    return failed


@transaction.atomic
def reschedule_jobs(
    job_ids: Collection[int],
    *,
    outcome: Attempt.Outcome,
    actor: Actor,
    reason: str,
    cause: str = "",
    is_at_fault: bool = True,
) -> Applied:
    """Close the open attempts; jobs with attempts left wait again, the others fail.

    Where the place of the attempt `is_at_fault`, a job pauses first, longer from time to time, and
    may keep away from the place; else it waits again at once.
    """
    # All at once and in id order, as everybody locks jobs; two groups in turn could deadlock.
    locked = Job.objects.filter(pk__in=job_ids).order_by("pk").select_for_update()
    jobs = list(locked.only("attempt_number", "max_attempts"))
    exhausted = [job.pk for job in jobs if job.attempt_number >= job.max_attempts]
    failed = lifecycle.apply(
        "fail", exhausted, actor=actor, reason=f"{reason}; all attempts are used up", cause=cause
    )
    again = [job for job in jobs if job.attempt_number < job.max_attempts]
    if is_at_fault:
        avoid_places([job.pk for job in again])
    applied = Applied(skipped=sorted(set(job_ids) - {job.pk for job in jobs}))
    for pause_s, ids in _by_pause(again, is_at_fault=is_at_fault).items():
        part = _send_back(ids, pause_s, actor=actor, reason=reason, cause=cause)
        applied.changed.extend(part.changed)
        applied.skipped.extend(part.skipped)
    close_attempts(failed.changed + applied.changed, outcome=outcome, reason=reason)
    at_once = Job.objects.filter(pk__in=applied.changed, not_before=None)
    ready = list(at_once.values_list("pk", flat=True))
    lifecycle.apply("requeue", ready, actor=actor, reason=reason, cause=cause)
    enqueue_again(ready)
    return applied


def _by_pause(jobs: Collection[Job], *, is_at_fault: bool) -> dict[float, list[int]]:
    pauses_s = conf().reschedule_pauses_s if is_at_fault else ()
    ids: dict[float, list[int]] = defaultdict(list)
    for job in jobs:
        ids[pause_after_s(job.attempt_number, pauses_s)].append(job.pk)
    return ids


def _send_back(
    job_ids: list[int], pause_s: float, *, actor: Actor, reason: str, cause: str
) -> Applied:
    if not pause_s:
        return lifecycle.apply(
            "reschedule", job_ids, actor=actor, reason=reason, cause=cause, not_before=None
        )
    return lifecycle.apply(
        "reschedule",
        job_ids,
        actor=actor,
        reason=f"{reason}; it pauses for {pause_s:g} s",
        cause=cause,
        not_before=DatabaseTime(plus_s=pause_s),
    )


@transaction.atomic
def requeue_jobs(now: datetime) -> int:
    """Put a batch of jobs whose pauses are over back into their TaskQueues; their number.

    What somebody else has locked is left for the next time.
    """
    due = paused_until(now).order_by("pk")
    locked = due.select_for_update(skip_locked=True).values_list("pk", flat=True)
    ids = list(locked[:_REQUEUED_AT_ONCE])
    lifecycle.apply("requeue", ids, actor=_REQUEUER, reason="its pause is over", not_before=None)
    enqueue_again(ids)
    return len(ids)


def _locked_jobs(pilot_ids: Collection[int]) -> list[int]:
    """Ids of the jobs of these pilots, locked, so that none goes on to another pilot meanwhile.

    Asked again under the lock, because one may have gone on just before it.
    """
    jobs = Job.objects.filter(pk__in=_open_jobs(pilot_ids)).order_by("pk").select_for_update()
    locked = set(jobs.values_list("pk", flat=True))
    return sorted(locked.intersection(_open_jobs(pilot_ids)))


def _open_jobs(pilot_ids: Collection[int]) -> list[int]:
    return list(
        Attempt.objects.filter(pilot_id__in=pilot_ids, outcome="").values_list("job_id", flat=True)
    )

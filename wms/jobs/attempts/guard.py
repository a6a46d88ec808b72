"""Guard of pilots' reports about attempts: ownership, late reports, unstorable values.

Finds and locks the attempt that a report is about; ends one whose report can never be stored. A
late report becomes an event of the job.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from django.db import transaction

from wms.core.actors import Actor
from wms.core.database.permanent_errors import PERMANENT_ERRORS, UNSTORABLE_VALUES, told
from wms.core.errors import Conflict, NotFound
from wms.jobs import lifecycle, prepared_statements
from wms.jobs.attempts.rescheduling import reschedule_jobs
from wms.jobs.models import Attempt, Job, JobEvent
from wms.jobs.operations import close_attempts
from wms.jobs.states import WITH_PILOT, JobCause

log = structlog.get_logger(__name__)
_NO_ATTEMPT = "This pilot has no attempt {number} of job {job}."
_StoppedBy = Attempt.StoppedBy
#: Stops that pilots report of attempts whose jobs then run again.
_BY_PILOTS = frozenset({_StoppedBy.PREEMPTION, _StoppedBy.PILOT, _StoppedBy.PILOT_TIME})


class AttemptSuperseded(Conflict):
    """This attempt has ended or was replaced; its reports are not taken any more."""


class ReportUnstorable(AttemptSuperseded):
    """The report can never be stored; the attempt was ended without it."""


def find_attempt(job_id: int, number: int, *, pilot_id: int) -> Attempt:
    """The attempt, if it is this pilot's own. Raises NotFound otherwise."""
    attempt = (
        Attempt.objects.filter(job_id=job_id, number=number, pilot_id=pilot_id)
        .select_related("job__description")
        .first()
    )
    if attempt is None:
        raise NotFound(_NO_ATTEMPT.format(number=number, job=job_id))
    return attempt


def live_attempt(job_id: int, number: int, *, pilot_id: int) -> Attempt:
    """The attempt, if it is open. Raises NotFound or AttemptSuperseded."""
    attempt = find_attempt(job_id, number, pilot_id=pilot_id)
    if attempt.outcome or attempt.job.state not in WITH_PILOT:
        raise AttemptSuperseded(
            f"Attempt {number} of job {job_id} is closed: {attempt.reason or attempt.job.state}."
        )
    return attempt


def locked_attempt(job_id: int, number: int, *, pilot_id: int) -> tuple[Job, Attempt]:
    """The job, locked, and then the attempt as it is now. Raises NotFound."""
    job = prepared_statements.lock_job_of_attempt(job_id, number, pilot_id=pilot_id)
    attempt = prepared_statements.find_attempt(job_id, number, pilot_id=pilot_id)
    if job is None or attempt is None:
        raise NotFound(_NO_ATTEMPT.format(number=number, job=job_id))
    return job, attempt


def has_reported_its_end(attempt: Attempt) -> bool:
    """True when the attempt was closed by the report of its own pilot."""
    if attempt.outcome == Attempt.Outcome.LOST:
        return attempt.stopped_by in _BY_PILOTS
    return attempt.outcome in {Attempt.Outcome.DONE, Attempt.Outcome.FAILED}


@contextmanager
def report_guard(
    job_id: int, number: int, message: str, *, pilot_id: int, actor: Actor
) -> Iterator[None]:
    """Context in which a report of an attempt is handled, so that none is repeated for ever.

    A report that comes after the attempt's end becomes an event of the job, once. One that the
    database refuses, as it would at every try, ends the attempt: raises ReportUnstorable.
    """
    try:
        yield
    except AttemptSuperseded:
        note_late(job_id, number, message, actor=actor)
        raise
    except PERMANENT_ERRORS as error:
        reason = f"what its pilot sent ({message}) cannot be stored: {told(error)}"
        log.exception("report_unstorable", job=job_id, attempt=number, message=message)
        _end_unstorable(
            job_id,
            number,
            pilot_id=pilot_id,
            reason=reason,
            is_own_fault=isinstance(error, UNSTORABLE_VALUES),
            actor=actor,
        )
        raise ReportUnstorable(reason) from error


@transaction.atomic
def _end_unstorable(
    job_id: int, number: int, *, pilot_id: int, reason: str, is_own_fault: bool, actor: Actor
) -> None:
    """End an open attempt whose report cannot be stored.

    The job fails where its own values are at fault; else it runs again, as after a lost pilot.
    """
    job, attempt = locked_attempt(job_id, number, pilot_id=pilot_id)
    if attempt.outcome or job.attempt_number != number or job.state not in WITH_PILOT:
        return
    cause = JobCause.UNSTORABLE
    if is_own_fault:
        lifecycle.apply("fail", [job_id], actor=actor, reason=reason, cause=cause)
        close_attempts([job_id], outcome=Attempt.Outcome.FAILED, reason=reason)
    else:
        outcome = Attempt.Outcome.LOST
        reschedule_jobs([job_id], outcome=outcome, actor=actor, reason=reason, cause=cause)


@transaction.atomic
def note_late(job_id: int, number: int, message: str, *, actor: Actor) -> None:
    """Write an event, once for each kind, for a report that came after its attempt's end.

    A repetition of what the pilot sent before its report of the end is none.
    """
    facts = {"attempt": number, "message": message}
    Job.objects.select_for_update().get(pk=job_id)
    attempt = Attempt.objects.get(job_id=job_id, number=number)
    if has_reported_its_end(attempt):
        return
    if not JobEvent.objects.filter(job_id=job_id, event="late", facts=facts).exists():
        lifecycle.note("late", {job_id: facts}, actor=actor)

"""Return of a job that a pilot has claimed, and whose input data are nowhere by then."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from wms.core.actors import Actor
from wms.jobs.attempts.rescheduling import MOST_FREE_ATTEMPTS, reschedule_jobs
from wms.jobs.input_data.refreshing import TAKEN_OVER, take_over
from wms.jobs.input_data.sets import columns_of
from wms.jobs.input_data.wanted import locate, wanted_by_job
from wms.jobs.models import Attempt, InputSet, Job
from wms.jobs.states import WITH_PILOT, JobCause


@transaction.atomic
def wait_for_inputs(attempt: Attempt, *, actor: Actor, reason: str) -> None:
    """Let the job wait again, for a replica of its inputs; the attempt is not run.

    It costs the job none of its attempts, unless it has had very many, or its set is held by
    somebody else at this moment, so that it may be claimed again before that is known. Nothing
    happens when the job has gone on to another attempt meanwhile.
    """
    job = Job.objects.select_for_update(of=("self",)).select_related("owner", "description")
    found = job.get(pk=attempt.job_id)
    if found.attempt_number != attempt.number or found.state not in WITH_PILOT:
        return
    is_known = _is_known_to_be_nowhere(found)
    if is_known and found.attempt_number < MOST_FREE_ATTEMPTS:
        Job.objects.filter(pk=found.pk).update(max_attempts=F("max_attempts") + 1)
    reschedule_jobs(
        [found.pk],
        outcome=Attempt.Outcome.NOT_RUN,
        actor=actor,
        reason=reason,
        cause=JobCause.INPUTS,
        is_at_fault=False,
    )


def _is_known_to_be_nowhere(job: Job) -> bool:
    """Whether the set of the job tells by now that its inputs are nowhere."""
    wanted = wanted_by_job(job)
    if wanted is None:
        return False
    rows = InputSet.objects.filter(key=wanted.key())
    row = rows.select_for_update(skip_locked=True).first()
    if row is None:
        # One that is not there is made, and resolved, when the job joins a TaskQueue.
        return not rows.exists()
    [located] = locate([wanted])
    take_over(row, columns_of(located))
    row.save(update_fields=TAKEN_OVER)
    return located.sites == ()

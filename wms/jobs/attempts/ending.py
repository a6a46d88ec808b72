"""End of an attempt as its pilot reports it: the job is done, fails, is held or runs again.

It stores exit code and usage, publishes the outputs of a success, and reschedules a job that was
stopped by its pilot, by pre-emption or by the end of its pilot's time, for which it then asks for
more. A retry avoids the host of the failure. A repeated report changes nothing. Also takes back a
job that its pilot could not run (`return_job`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from matching.task_queues.needs import Needs
from wms.core.actors import Actor
from wms.jobs import lifecycle, prepared_statements
from wms.jobs.attempts.checkpoints import has_checkpoint
from wms.jobs.attempts.guard import (
    AttemptSuperseded,
    find_attempt,
    has_reported_its_end,
    live_attempt,
    locked_attempt,
    report_guard,
)
from wms.jobs.attempts.hold_codes import Hold, note_subcodes
from wms.jobs.attempts.rerun_needs import avoid_host, needs_of_more_time
from wms.jobs.attempts.rescheduling import MOST_FREE_ATTEMPTS, reschedule_jobs
from wms.jobs.binding.late_values import recall
from wms.jobs.content.job_files import listed_names, misplaced_file
from wms.jobs.content.publishing import missing_outputs_reason, publish
from wms.jobs.directives import Directives
from wms.jobs.expressions import (
    MOST_PAYLOAD_FAILURES,
    JobAd,
    PayloadExit,
    has_retries,
    retries_end,
    success_code,
)
from wms.jobs.models import Attempt, Job
from wms.jobs.models.attempts import USED_IN_COLUMNS
from wms.jobs.operations import hold_jobs
from wms.jobs.states import WITH_PILOT, JobCause, JobState

_ON_EXIT_HOLD = "on_exit_hold is true"
_StoppedBy = Attempt.StoppedBy
#: Of the end of a payload; by its attempt, and by the cause of its job's state.
_TOLD_ELSEWHERE = (
    "usage", "wall_s", "max_rss_mb", "folders", "is_image_at_fault", "failed_transfer",
    "sent_to_urls",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PayloadEnd:
    """The end of a payload, as its pilot reports it.

    `reason` is set when the payload was stopped, and `stopped_by` tells by whom, or when it could
    not be started; `is_image_at_fault` tells that its container could not, `failed_transfer` is the
    cause where it is a URL of an input or output. `sent_to_urls` is the number of outputs that
    were sent to theirs.
    `usage` is what it used in all, in seconds and MB. `folders` are the announced outputs that are
    folders, with the number of files in each.
    """

    exit_code: int | None
    signal: int | None = None
    wall_s: float | None = None
    cpu_s: float | None = None
    max_rss_mb: float | None = None
    reason: str = ""
    missing_outputs: tuple[str, ...] = ()
    stopped_by: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)
    folders: Mapping[str, int] = field(default_factory=dict)
    is_image_at_fault: bool = False
    failed_transfer: str = ""
    sent_to_urls: int = 0

    def facts(self) -> dict[str, Any]:
        """Facts of the job's event, without signals that the pilot itself has sent."""
        facts = {name: value for name, value in asdict(self).items() if value not in (None, "", ())}
        # The attempt tells the rest of what it used.
        for name in _TOLD_ELSEWHERE:
            facts.pop(name, None)
        if self.reason:
            facts.pop("signal", None)
        return facts

    def usage_besides(self) -> dict[str, float]:
        """What it used that the columns of its attempt do not tell."""
        told = {name: getattr(self, column) for name, column in USED_IN_COLUMNS.items()}
        return {name: used for name, used in self.usage.items() if told.get(name) != used}

    def failure(self, success_code: int = 0) -> str:
        """Reason for which the payload counts as failed; empty when it succeeded."""
        if self.reason:
            return self.reason
        if self.signal is not None:
            return f"the payload was ended by signal {self.signal}"
        if self.exit_code != success_code:
            return f"the payload ended with exit code {self.exit_code}"
        if self.missing_outputs:
            return f"output files are missing: {listed_names(self.missing_outputs)}"
        return ""

    def cause(self, success_code: int = 0) -> JobCause:
        """The cause of that failure."""
        if self.stopped_by == _StoppedBy.PILOT_TIME:
            return JobCause.PILOT_TIME
        if self.is_image_at_fault and self.reason:
            return JobCause.IMAGE
        if self.failed_transfer and self.reason:
            return JobCause(self.failed_transfer)
        is_own = self.reason or self.signal is not None or self.exit_code != success_code
        return JobCause.PAYLOAD if is_own else JobCause.OUTPUTS


def end_attempt(
    job_id: int, number: int, *, pilot_id: int, end: PayloadEnd, actor: Actor, now: datetime
) -> None:
    """End an attempt: the job is done and its files appear in the workspace, or it fails.

    Or the job runs again, or is held, if its description says so; or it is rescheduled, if the
    batch system or the pilot stopped it, or its pilot's time was too short and there are longer
    ones. Repeating the report changes nothing. Raises AttemptSuperseded when the job was taken
    from this attempt meanwhile: then none of its files counts.
    """
    with (
        report_guard(job_id, number, "ended", pilot_id=pilot_id, actor=actor),
        transaction.atomic(),
    ):
        _end(job_id, number, pilot_id=pilot_id, end=end, actor=actor, now=now)


def _end(
    job_id: int, number: int, *, pilot_id: int, end: PayloadEnd, actor: Actor, now: datetime
) -> None:
    job, attempt = locked_attempt(job_id, number, pilot_id=pilot_id)
    if has_reported_its_end(attempt):
        return
    recall(job, attempt)
    if attempt.outcome or job.attempt_number != number or job.state not in WITH_PILOT:
        raise AttemptSuperseded(f"Attempt {number} of job {job_id} was replaced or stopped.")
    _note_start(job, actor)
    if _reschedule_if_stopped(job, attempt, end, actor=actor, now=now):
        return
    failure, cause = _failure(job, attempt, end)
    ad = JobAd(job, attempt, now, PayloadExit(end.exit_code, end.signal))
    hold = _exit_hold(job, ad, end, failure)
    is_held = hold is not None
    again = "" if is_held else _rerun_reason(job, ad, end, failure)
    reason = failure or again or (hold.reason if hold else "")
    outcome = Attempt.Outcome.FAILED if reason else Attempt.Outcome.DONE
    _write_end(attempt, end, now, outcome=outcome, reason=reason, ended_at=now)
    publish(job, attempt, with_outputs=not failure and not again and not is_held, now=now)
    facts = {job_id: end.facts()}
    if is_held or again:
        _refund_attempt(job_id)
    if hold is not None:
        facts[job_id] |= hold.facts()
        note_subcodes({job_id: hold.subcode})
        hold_jobs([job_id], actor=actor, reason=hold.reason, cause=hold.cause, facts=facts)
    elif again:
        host = attempt.host if failure else ""
        _run_again(job, reason=again, cause=cause, host=host, actor=actor)
    elif failure:
        lifecycle.apply("fail", [job_id], actor=actor, reason=failure, cause=cause, facts=facts)
    else:
        _drop_checkpoint(job)
        is_told = Directives.of(job.directives).notification in {"complete", "always"}
        lifecycle.apply("complete", [job_id], actor=actor, facts=facts, is_owner_told=is_told)


def _exit_hold(job: Job, ad: JobAd, end: PayloadEnd, failure: str) -> Hold | None:
    """The hold with which the end of a payload is followed; None if there is none."""
    directives = Directives.of(job.directives)
    is_overdue = (end.wall_s or 0.0) >= job.wall_limit_s
    is_stopped = end.stopped_by == _StoppedBy.WATCHDOG
    if is_stopped and is_overdue and directives.is_held_at_wall_limit:
        reason = f"the payload ran longer than the {job.wall_limit_s} s that it may"
        return Hold(reason, JobCause.EXECUTION)
    code = directives.checkpoint_exit_code
    if code is not None and end.exit_code == code and not end.reason and end.missing_outputs:
        reason = f"files of its checkpoint are missing: {listed_names(end.missing_outputs)}"
        return Hold(reason, JobCause.CHECKPOINT)
    if not ad.is_true("on_exit_hold"):
        return None
    told = ad.text("on_exit_hold_reason") or _ON_EXIT_HOLD
    reason = f"{told}: {failure}" if failure else told
    return Hold(reason, JobCause.EXPRESSION, ad.whole_number("on_exit_hold_subcode"))


def _drop_checkpoint(job: Job) -> None:
    if Directives.of(job.directives).checkpoint_exit_code is not None:
        lifecycle.drop_checkpoints([job.pk])


def _failure(job: Job, attempt: Attempt, end: PayloadEnd) -> tuple[str, JobCause]:
    """Reason of a failure, empty for a success, and the cause of what follows."""
    code = success_code(job)
    if failure := end.failure(code):
        return failure, end.cause(code)
    to_send = len(Directives.of(job.directives).output_urls)
    if end.sent_to_urls < to_send:
        # As a pilot of a release does that knows no URLs.
        failure = f"{end.sent_to_urls} outputs of {to_send} were sent to their URLs"
        return failure, JobCause.SEND
    if failure := missing_outputs_reason(job, attempt, end.folders):
        return failure, JobCause.OUTPUTS
    if failure := misplaced_file(job):
        return failure, JobCause.UNRUNNABLE
    return "", JobCause.EXPRESSION


def _run_again(job: Job, *, reason: str, cause: JobCause, host: str, actor: Actor) -> None:
    """Run the payload again, on another host than the one where it failed, if any."""
    Job.objects.filter(pk=job.pk).update(payload_failures=F("payload_failures") + 1)
    avoid_host(job, host)
    outcome = Attempt.Outcome.FAILED
    reschedule_jobs(
        [job.pk], outcome=outcome, actor=actor, reason=reason, cause=cause, is_at_fault=False
    )


def _note_start(job: Job, actor: Actor) -> None:
    """Note the start of a payload whose end is the first report of it."""
    if job.state == JobState.MATCHED:
        lifecycle.apply("start", [job.pk], actor=actor)


def _reschedule_if_stopped(
    job: Job, attempt: Attempt, end: PayloadEnd, *, actor: Actor, now: datetime
) -> bool:
    """Reschedule the job if its payload was stopped and may run elsewhere; True if it was."""
    needs = None
    is_saved = (
        end.stopped_by == _StoppedBy.PILOT_TIME
        and Directives.of(job.directives).checkpoint_exit_code is not None
        and has_checkpoint(job.pk)
    )
    if end.stopped_by == _StoppedBy.PILOT_TIME and not is_saved:
        needs = needs_of_more_time(job, end.wall_s or 0.0, now)
    is_free = is_saved or end.stopped_by == _StoppedBy.PREEMPTION
    if (
        needs is None
        and not is_saved
        and end.stopped_by not in {_StoppedBy.PREEMPTION, _StoppedBy.PILOT}
    ):
        return False
    _write_end(attempt, end, now)
    if needs is None:
        _reschedule_elsewhere(job, end, is_free=is_free, actor=actor)
    else:
        _reschedule_with_more_time(job, end, needs, actor=actor)
    return True


def _reschedule_elsewhere(job: Job, end: PayloadEnd, *, is_free: bool, actor: Actor) -> None:
    """Reschedule a job whose payload was stopped through no fault of its own.

    Preemption costs none of the attempts that a job has for lost pilots, nor does the end of its
    pilot's time for a job that goes on from a checkpoint.
    """
    is_preempted = end.stopped_by == _StoppedBy.PREEMPTION
    if is_free and job.attempt_number < MOST_FREE_ATTEMPTS:
        _refund_attempt(job.pk)
    who = "the batch system wanted its slot back" if is_preempted else "its pilot stopped it"
    reschedule_jobs(
        [job.pk],
        outcome=Attempt.Outcome.LOST,
        actor=actor,
        reason=f"{who}: {end.reason}" if end.reason else who,
        cause=JobCause.PREEMPTED if is_preempted else JobCause.NOT_RUN,
        is_at_fault=not is_free,
    )


def _reschedule_with_more_time(job: Job, end: PayloadEnd, needs: Needs, *, actor: Actor) -> None:
    """Run the job again at once, with needs of more time than its pilot had."""
    job.give(needs=needs.as_dict())
    job.save(update_fields=["own"])
    reschedule_jobs(
        [job.pk],
        outcome=Attempt.Outcome.LOST,
        actor=actor,
        reason=f"{end.reason}; from now on it asks for {needs.cpu_time_s} s",
        cause=JobCause.PILOT_TIME,
        is_at_fault=False,
    )


def _refund_attempt(job_id: int) -> None:
    """Add an attempt, so that this one does not count among those for lost pilots."""
    Job.objects.filter(pk=job_id).update(max_attempts=F("max_attempts") + 1)


def _rerun_reason(job: Job, ad: JobAd, end: PayloadEnd, failure: str) -> str:
    """Reason to run the payload again; empty when it is not."""
    tried = job.payload_failures + 1
    if end.stopped_by == _StoppedBy.PILOT_TIME:
        # No pilot has time for it.
        return ""
    if not has_retries(job):
        if not ad.is_false("on_exit_remove") or tried > MOST_PAYLOAD_FAILURES:
            return ""
        return f"on_exit_remove is false{f': {failure}' if failure else ''}"
    # Each of these is an end, as in HTCondor, which joins them by an "or".
    is_over = not failure or tried > job.max_retries or ad.is_true("on_exit_remove")
    if is_over or retries_end(job, ad, end.exit_code):
        return ""
    return f"{failure}; retry {tried} of {job.max_retries}"


def _write_end(
    attempt: Attempt,
    end: PayloadEnd,
    now: datetime,
    *,
    outcome: str = "",
    reason: str = "",
    ended_at: datetime | None = None,
) -> None:
    """Store the end of the payload and its usage, whatever follows for the job.

    The start of an attempt that reported none is counted back from its end. Without an outcome
    it stays open, for the rescheduling of its job.
    """
    prepared_statements.end_attempt(
        attempt.pk,
        began_at=now - timedelta(seconds=end.wall_s or 0.0),
        exit_code=end.exit_code,
        signal=end.signal,
        wall_s=end.wall_s,
        cpu_s=end.cpu_s,
        max_rss_mb=end.max_rss_mb,
        stopped_by=end.stopped_by,
        usage=end.usage_besides() if end.usage else attempt.usage,
        outcome=outcome,
        reason=reason,
        ended_at=ended_at,
    )


def return_job(
    job_id: int,
    number: int,
    *,
    pilot_id: int,
    reason: str,
    actor: Actor,
    is_preempted: bool = False,
    failed_transfer: str = "",
) -> None:
    """Take back a job that the pilot could not run, and let it wait for another pilot.

    Pre-emption costs none of its attempts. With `failed_transfer` it is not the pilot that failed
    but the transfer of a URL, which is the cause then. Repeating it changes nothing.
    """
    with (
        report_guard(job_id, number, "not_run", pilot_id=pilot_id, actor=actor),
        transaction.atomic(),
    ):
        find_attempt(job_id, number, pilot_id=pilot_id)
        # The job first, as everybody: so a repetition at the same time gives nothing back twice.
        Job.objects.select_for_update().get(pk=job_id)
        attempt = find_attempt(job_id, number, pilot_id=pilot_id)
        if attempt.outcome == Attempt.Outcome.NOT_RUN or has_reported_its_end(attempt):
            return
        attempt = live_attempt(job_id, number, pilot_id=pilot_id)
        has_begun = attempt.started_at is not None
        outcome = Attempt.Outcome.LOST if has_begun else Attempt.Outcome.NOT_RUN
        by = _StoppedBy.PREEMPTION if is_preempted else _StoppedBy.PILOT
        Attempt.objects.filter(pk=attempt.pk).update(stopped_by=by)
        if is_preempted and number < MOST_FREE_ATTEMPTS:
            _refund_attempt(job_id)
        reschedule_jobs(
            [job_id],
            outcome=outcome,
            actor=actor,
            reason=reason,
            cause=JobCause.PREEMPTED if is_preempted else failed_transfer or JobCause.NOT_RUN,
            is_at_fault=not is_preempted,
        )

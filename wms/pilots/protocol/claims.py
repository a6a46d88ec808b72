"""Claim of a pilot: a job that fits, bound to the pilot, or the reason why there is none.

Asked again under the same key it gives the same job. A drawn job without its input files fails, and
so does one with a URL that leads nowhere; one without values of the site is held. On a suspected
node the job is noted as a trial.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from math import ceil

from django.db import transaction

from matching.task_queues.needs import MOST
from matching.task_queues.resources import Resource
from matching.task_queues.start_expressions import StartRule
from wms.core.conf import conf
from wms.core.database.statements import prepared_rows
from wms.core.errors import NotAuthenticated
from wms.jobs import operations as jobs
from wms.jobs.binding.late_values import CannotFill, fill
from wms.jobs.content.inputs import input_blobs, missing_inputs
from wms.jobs.content.job_files import listed_names, misplaced_file
from wms.jobs.input_data.returning import wait_for_inputs
from wms.jobs.limits import ClaimLimits
from wms.jobs.models import Attempt, Blob, Job
from wms.jobs.payload_tokens import PayloadToken, token_for
from wms.jobs.prepared_statements import attempts_of_claim
from wms.jobs.states import JobCause
from wms.pilots.models import Pilot
from wms.pilots.monitoring import suspects
from wms.pilots.protocol.attempt_refs import AttemptRef
from wms.pilots.protocol.refusals import Refusal, RetryWhen, no_fit_refusal, rest_refusal
from wms.pilots.protocol.registration import attempt_token, pilot_actor
from wms.pilots.protocol.sql import BEGIN_CLAIM
from wms.pilots.protocol.url_transfers import CannotResolve, NoReplica, Transfers, transfers_of
from wms.pilots.selectors import host_of, is_alone
from wms.pilots.states import TERMINAL
from wms.sites.cpu_power import power_of
from wms.sites.frontends.entries import confined, start_rule
from wms.sites.selectors import lapsed_identities
from wms.taskqueues import operations as taskqueues
from wms.taskqueues.waiting import ClaimingHost, has_failed_at


@dataclass(frozen=True, slots=True)
class Work:
    """Claimed job: all that the pilot must know to run it, and what it may use.

    `cpu_time_s` is that of the pilot's own cores, whatever their power. `token` is for its
    messages about the attempt, `bearer` for the payload, if its job asks for one. `transfers` are
    of URLs, if it names any.
    """

    attempt: AttemptRef
    job: Job
    inputs: Mapping[str, Blob]
    cores: int
    memory_mb: int
    gpus: int
    cpu_time_s: int
    token: str
    bearer: PayloadToken | None = None
    transfers: Transfers | None = None


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """Answer to a claim: a job, or the reason why there is none and when to ask again."""

    work: Work | None = None
    reason: str = ""
    until: RetryWhen = RetryWhen.OTHER
    again_s: float = 0.0


def claim_job(
    pilot: Pilot,
    resource: Resource,
    *,
    claim_key: str,
    now: datetime,
    unreported: Set[AttemptRef] = frozenset(),
    is_called: bool = False,
) -> ClaimAnswer:
    """Give the pilot a job that fits, bound to it from this moment on, or tell why there is none.

    `resource` is what the pilot says it has free; what its open attempts hold of the queue's offer
    is left out, but for those that are over there and `unreported`: the server could not take their
    reports yet, and no job may keep others waiting by that.
    `claim_key` is the pilot's own name for this claim. Asking again under the same key gives the
    same job, as long as its attempt is open, and never another one.
    A private pilot gets nothing new once its owner's account is switched off or has left its group.
    One that asked in vain a moment ago is answered without a look at what waits, unless it was
    called since more does: a fruitless draw is the dearest one.
    Raises NotAuthenticated when the pilot has ended.
    """
    if pilot.state in TERMINAL:
        raise NotAuthenticated("This pilot has ended; it gets no more work.")
    result = _bind_job(pilot, resource, claim_key, unreported, now, is_called)
    if isinstance(result, Refusal):
        return ClaimAnswer(reason=result.reason, until=result.until, again_s=result.again_s)
    return _answer(pilot, result, now)


@transaction.atomic
def _bind_job(
    pilot: Pilot,
    resource: Resource,
    claim_key: str,
    unreported: Set[AttemptRef],
    now: datetime,
    is_called: bool,
) -> Attempt | Refusal:
    # The pilot's row first: two claims at once wait for each other here, so that one key never gets
    # two jobs, and no core is given away twice.
    host = host_of(pilot)
    about = {"now": now, "pilot": pilot.pk, "ended": sorted(TERMINAL)}
    rows = prepared_rows(BEGIN_CLAIM, {**about, "site": pilot.queue.site_id, "host": host})
    if not rows:
        return Refusal("the pilot has ended")
    [(fruitless_at, drain_reason, suspect_id, frontend_id, groups, *starts)] = rows
    attempts = attempts_of_claim(pilot.pk, claim_key)
    given = next((each for each in attempts if each.claim_key == claim_key), None)
    if given is not None:
        closed = f"the job of this claim is closed: {given.outcome}"
        return Refusal(closed) if given.outcome else given
    if drain_reason:
        return Refusal(f"the pilot is to take no more jobs: {drain_reason}")
    refusal = None if is_called else rest_refusal(fruitless_at, now)
    refusal = refusal or suspects.no_trial(suspect_id, now)
    if refusal is not None:
        return refusal
    own = confined(resource, frontend_id, tuple(groups or ()))
    if own is None:
        return Refusal("no group belongs to the pilot's frontend")
    began_s = time.monotonic()
    held = [each for each in attempts if AttemptRef(each.job_id, each.number) not in unreported]
    taker = ClaimingHost(host, conf().retry_patience_s, takes_retries=suspect_id is None)
    texts = [text for each in starts for text in each] if own.pilot_type != "private" else []
    start = start_rule(pilot.queue, texts) if texts else None
    result = _draw_job(pilot, own, start, claim_key, held, taker, now)
    if isinstance(result, Refusal):
        took = timedelta(seconds=time.monotonic() - began_s)
        Pilot.objects.filter(pk=pilot.pk).update(fruitless_at=now + took)
    elif suspect_id is not None:
        suspects.note_trial(suspect_id, result.pk, now)
    return result


def _draw_job(
    pilot: Pilot,
    resource: Resource,
    start: StartRule | None,
    claim_key: str,
    held: Sequence[Attempt],
    taker: ClaimingHost,
    now: datetime,
) -> Attempt | Refusal:
    identity = pilot.owner, pilot.owner_group
    if reason := lapsed_identities([identity]).get(identity):
        return Refusal(reason)
    free = _free(pilot, resource, held)
    if not free.cores:
        return Refusal("no core of the pilot is free")
    limits = ClaimLimits.at(pilot.queue.site.name, now)
    free = replace(free, excluded=limits.reached())
    draw = partial(
        taskqueues.claim,
        free,
        facts=pilot.node,
        published=pilot.published,
        refuses=limits.refuses,
        refuses_any=bool(limits.limits),
        start=start,
    )
    claimed = draw(taker=taker)
    left = claimed is None and has_failed_at(taker.host)
    if left and taker.takes_retries and is_alone(pilot):
        claimed = draw()
    if claimed is None:
        return no_fit_refusal(free, taker.host if left else "")
    bound = jobs.bind_to_pilot(
        claimed,
        pilot_id=pilot.pk,
        site_name=pilot.queue.site.name,
        host=taker.host,
        free_cores=free.cores,
        actor=pilot_actor(pilot),
        claim_key=claim_key,
    )
    if bound is None:
        return Refusal("the job that was drawn is not waiting any more")
    limits.matched(claimed.needs)
    return bound


def _free(pilot: Pilot, resource: Resource, held: Sequence[Attempt]) -> Resource:
    """Free share of the pilot as it reports it, but no more than its open attempts leave.

    The disk is the one that the pilot told of when it registered: a queue offers none in all, only
    what one payload may use.
    """
    queue, disk_mb = pilot.queue, pilot.node.get("disk_mb", MOST["disk_mb"])
    return replace(
        resource,
        cores=_left(queue.cores, sum(each.cores for each in held), resource.cores),
        memory_mb=_left(queue.memory_mb, sum(each.memory_mb for each in held), resource.memory_mb),
        gpus=_left(queue.gpus, sum(each.gpus for each in held), resource.gpus),
        disk_mb=_left(disk_mb, sum(each.disk_mb for each in held), resource.disk_mb),
    )


def _left(offered: int, held: int, said: int) -> int:
    return max(0, min(offered - held, said))


def _answer(pilot: Pilot, attempt: Attempt, now: datetime) -> ClaimAnswer:
    job = attempt.job
    try:
        fill(attempt)
    except CannotFill as error:
        reason = f"at {attempt.site_name}: {error}"
        jobs.hold_unfilled(attempt, actor=pilot_actor(pilot), reason=reason)
        return ClaimAnswer(reason=f"job {job.pk} is held: {reason}")
    inputs = input_blobs(job)
    missing = missing_inputs(job, list(inputs))
    absent = f"input files do not exist: {listed_names(missing)}" if missing else ""
    # Before it runs: afterwards its results would have no place.
    if reason := absent or misplaced_file(job):
        cause = JobCause.INPUTS if absent else JobCause.UNRUNNABLE
        return _unrunnable(pilot, attempt, reason, cause)
    try:
        transfers = transfers_of(attempt)
    except NoReplica as error:
        wait_for_inputs(attempt, actor=pilot_actor(pilot), reason=str(error))
        return ClaimAnswer(reason=f"job {job.pk} waits for its input data: {error}")
    except CannotResolve as error:
        return _unrunnable(pilot, attempt, str(error), JobCause.FETCH)
    ref = AttemptRef(job.pk, attempt.number)
    return ClaimAnswer(
        Work(
            ref,
            job,
            inputs,
            cores=attempt.cores,
            memory_mb=attempt.memory_mb,
            gpus=attempt.gpus,
            cpu_time_s=ceil(job.needs["cpu_time_s"] / power_of(pilot.queue, pilot.published)),
            token=attempt_token(pilot, ref),
            bearer=token_for(attempt, now=now),
            transfers=transfers,
        )
    )


def _unrunnable(pilot: Pilot, attempt: Attempt, reason: str, cause: JobCause) -> ClaimAnswer:
    """The answer in place of a job that no pilot can run, and that has failed therefore."""
    jobs.fail_unrunnable(attempt, actor=pilot_actor(pilot), reason=reason, cause=cause)
    return ClaimAnswer(reason=f"job {attempt.job_id} cannot be run: {reason}")

"""What a pilot asks of the server: to be registered, to be heard, to be given a job."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils.crypto import salted_hmac

from matching.resources import Resource
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.errors import NotAuthenticated
from wms.core.prepared import Parameter, PreparedQuery
from wms.core.statements import one_line, prepared_rows
from wms.jobs import services as jobs
from wms.jobs.inputs import input_blobs, missing_inputs
from wms.jobs.limits import Gate
from wms.jobs.models import Attempt, Blob, Job
from wms.jobs.places import misplaced, names_told
from wms.pilots import lifecycle, suspects
from wms.pilots.models import Pilot
from wms.pilots.references import AttemptRef
from wms.pilots.refusals import Refusal, Until, must_rest, none_fits
from wms.pilots.selectors import host_of, is_alone
from wms.pilots.states import TERMINAL, TOKEN_GRACE
from wms.sites.models import Queue
from wms.sites.selectors import lapsed_identities
from wms.sites.settling import settle_fence
from wms.taskqueues import services as taskqueues
from wms.taskqueues.waiting import Taker, has_failed_at

#: Why pilots end by themselves; the last two are failures.
ENDS = ("idle", "drained", "lifetime", "terminated", "preempted", "unfit", "error")
_FAILED_ENDS = frozenset({"unfit", "error"})

_ASK = one_line("""
UPDATE pilots_pilot SET heartbeat_at = %(now)s
WHERE id = %(pilot)s AND state <> ALL(%(ended)s::text[])
RETURNING fruitless_at, drain_reason, (
    SELECT s.id FROM pilots_suspectednode AS s
    WHERE s.site_id = %(site)s AND s.host = %(host)s AND s.ended_at IS NULL)
""")


# With all that it can offer, and nothing else: every request of a pilot begins with it.
_BY_UUID = PreparedQuery(
    lambda: Pilot.objects.filter(uuid=Parameter("uuid"))
    .select_related("queue__site", "owner", "owner_group")
    .only(
        "uuid", "state", "token_sha256", "node", "ended_at",
        *(f"queue__{name}" for name in (
            "name", "element", "cores", "memory_mb", "gpus", "wall_time_s", "platform", "setup",
            "submit_pool", "tags", "required_tags", "site__name",
        )),
        "owner__username", "owner__is_active", "owner_group__name", "owner_group__has_job_sharing",
    )
)  # fmt: skip
# The open attempts of a pilot, and that of a claim.
_OWN = PreparedQuery(
    lambda: Attempt.objects.filter(pilot_id=Parameter("pilot_id")).filter(
        Q(outcome="") | Q(claim_key=Parameter("claim_key"))
    )
)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a pilot is told when it registers; times in seconds."""

    heartbeat_s: float
    poll_s: float
    idle_limit_s: float
    lifetime_s: float
    fence: str
    network: str
    limits: Mapping[str, float]
    hold_after_failure_s: int
    shared_folders: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed job: everything the pilot must know to run it, and what it may use."""

    attempt: AttemptRef
    job: Job
    inputs: Mapping[str, Blob]
    cores: int
    memory_mb: int
    gpus: int
    token: str


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """A job, or the reason why there is none, and after how long a rest to ask again."""

    work: Work | None = None
    reason: str = ""
    until: Until = Until.OTHER
    again_s: float = 0.0


def secret_digest(secret: str) -> str:
    """How secrets and tokens are stored. They are random and long, so a plain hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def pilot_actor(pilot: Pilot) -> Actor:
    """The author of what this pilot does."""
    return Actor.pilot(str(pilot.uuid))


@transaction.atomic
def register_pilot(
    uuid: UUID, *, secret: str, token: str, node: Mapping[str, Any], now: datetime
) -> Terms:
    """Accept a pilot by its one-time secret; `token` is its credential from now on.

    Asking again with the same token is answered again, because the first answer may have been
    lost; with another token the secret is used up. Raises NotAuthenticated.
    """
    pilot = (
        Pilot.objects.select_for_update(of=("self",))
        .select_related("queue__site")
        .filter(uuid=uuid)
        .first()
    )
    if pilot is None or not hmac.compare_digest(pilot.secret_sha256, secret_digest(secret)):
        raise NotAuthenticated
    if pilot.token_sha256:
        if pilot.state in TERMINAL or not hmac.compare_digest(
            pilot.token_sha256, secret_digest(token)
        ):
            raise NotAuthenticated
    else:
        applied = lifecycle.apply(
            "register",
            [pilot.pk],
            actor=pilot_actor(pilot),
            token_sha256=secret_digest(token),
            node=_with_fence(node, pilot),
            registered_at=now,
            heartbeat_at=now,
        )
        if not applied.changed:
            raise NotAuthenticated
    return _terms(pilot.queue)


def _with_fence(node: Mapping[str, Any], pilot: Pilot) -> dict[str, Any]:
    """The node's facts, with the fence that payloads get, and with the one that works there.

    A pilot on whose node the queue's fence does not work runs no payload.
    """
    found = str(node.get("fence", ""))
    if found:
        settle_fence(pilot.queue, found, actor=pilot_actor(pilot))
    fence = pilot.queue.effective_fence or found
    return {**node, "fence": fence, "fence_found": found} if fence else dict(node)


def _terms(queue: Queue) -> Terms:
    settings = conf()
    own = {"wall_s": queue.wall_time_s, "memory_mb": queue.memory_mb}
    limits = {name: limit for name, limit in own.items() if limit} | queue.payload_limits
    return Terms(
        heartbeat_s=settings.agent_heartbeat_s,
        poll_s=settings.agent_poll_s,
        idle_limit_s=settings.agent_idle_limit_s,
        lifetime_s=float(queue.wall_time_s),
        fence=queue.effective_fence or Queue.Fence.AUTO,
        network=queue.network,
        limits=limits,
        hold_after_failure_s=queue.hold_after_failure_s,
        shared_folders=queue.shared_folders,
    )


def authenticate_pilot(
    uuid: UUID, token: str, *, attempt: AttemptRef | None = None, now: datetime
) -> Pilot:
    """The pilot that holds this token, with all that it can offer. Raises NotAuthenticated.

    What is about one attempt may also carry the token of that attempt. Both end with the pilot,
    `TOKEN_GRACE` after it.
    """
    pilot = _BY_UUID.first(uuid=uuid)
    if pilot is None or not pilot.token_sha256:
        raise NotAuthenticated
    if pilot.ended_at is not None and pilot.ended_at <= now - TOKEN_GRACE:
        raise NotAuthenticated
    # As bytes: what came in the header may have any characters.
    if attempt is None or not hmac.compare_digest(
        attempt_token(pilot, attempt).encode(), token.encode()
    ):
        require_own_token(pilot, token)
    return pilot


def require_own_token(pilot: Pilot, token: str) -> None:
    """Raise NotAuthenticated unless this is the pilot's token, and not that of an attempt."""
    if not hmac.compare_digest(pilot.token_sha256, secret_digest(token)):
        raise NotAuthenticated


def attempt_token(pilot: Pilot, attempt: AttemptRef) -> str:
    """The credential for what concerns this attempt only: a payload's side of the pilot gets it.

    It is derived and not stored, so that a claim whose answer was lost is given the same again.
    """
    about = f"{pilot.token_sha256} {attempt.job_id} {attempt.number}"
    return salted_hmac("wms.pilots.attempt", about, algorithm="sha256").hexdigest()


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
    found = _bind_job(pilot, resource, claim_key, unreported, now, is_called)
    if isinstance(found, Refusal):
        return ClaimAnswer(reason=found.reason, until=found.until, again_s=found.again_s)
    return _answer(pilot, found)


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
    rows = prepared_rows(_ASK, {**about, "site": pilot.queue.site_id, "host": host})
    if not rows:
        return Refusal("the pilot has ended")
    [(fruitless_at, drain_reason, suspect_id)] = rows
    attempts = _OWN.rows(pilot_id=pilot.pk, claim_key=claim_key)
    given = next((each for each in attempts if each.claim_key == claim_key), None)
    if given is not None:
        closed = f"the job of this claim is closed: {given.outcome}"
        return Refusal(closed) if given.outcome else given
    if drain_reason:
        return Refusal(f"the pilot is to take no more jobs: {drain_reason}")
    refusal = None if is_called else must_rest(fruitless_at, now)
    refusal = refusal or suspects.no_trial(suspect_id, now)
    if refusal is not None:
        return refusal
    began_s = time.monotonic()
    held = [each for each in attempts if AttemptRef(each.job_id, each.number) not in unreported]
    taker = Taker(host, conf().retry_patience_s, takes_retries=suspect_id is None)
    found = _draw_job(pilot, resource, claim_key, held, taker, now)
    if isinstance(found, Refusal):
        took = timedelta(seconds=time.monotonic() - began_s)
        Pilot.objects.filter(pk=pilot.pk).update(fruitless_at=now + took)
    elif suspect_id is not None:
        suspects.note_trial(suspect_id, found.pk, now)
    return found


def _draw_job(
    pilot: Pilot,
    resource: Resource,
    claim_key: str,
    held: Sequence[Attempt],
    taker: Taker,
    now: datetime,
) -> Attempt | Refusal:
    identity = pilot.owner, pilot.owner_group
    if reason := lapsed_identities([identity]).get(identity):
        return Refusal(reason)
    free = _free(pilot.queue, resource, held)
    if not free.cores:
        return Refusal("no core of the pilot is free")
    gate = Gate.at(pilot.queue.site.name, now)
    free = replace(free, excluded=gate.reached())
    refuses = gate.refuses if gate.limits else None
    claimed = taskqueues.claim(free, facts=pilot.node, refuses=refuses, taker=taker)
    left = claimed is None and has_failed_at(taker.host)
    if left and taker.takes_retries and is_alone(pilot):
        claimed = taskqueues.claim(free, facts=pilot.node, refuses=refuses)
    if claimed is None:
        return none_fits(free, taker.host if left else "")
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
    gate.matched(claimed.needs)
    return bound


def _free(queue: Queue, resource: Resource, held: Sequence[Attempt]) -> Resource:
    """What the pilot says it has free, but no more than its open attempts leave of its queue's."""
    return replace(
        resource,
        cores=_left(queue.cores, sum(each.cores for each in held), resource.cores),
        memory_mb=_left(queue.memory_mb, sum(each.memory_mb for each in held), resource.memory_mb),
        gpus=_left(queue.gpus, sum(each.gpus for each in held), resource.gpus),
    )


def _left(offered: int, held: int, said: int) -> int:
    return max(0, min(offered - held, said))


def _answer(pilot: Pilot, attempt: Attempt) -> ClaimAnswer:
    job = attempt.job
    inputs = input_blobs(job)
    missing = missing_inputs(job, list(inputs))
    absent = f"input files do not exist: {names_told(missing)}" if missing else ""
    # Before it runs: afterwards its results would have no place.
    if reason := absent or misplaced(job):
        jobs.fail_unrunnable(attempt, actor=pilot_actor(pilot), reason=reason)
        return ClaimAnswer(reason=f"job {job.pk} cannot be run: {reason}")
    ref = AttemptRef(job.pk, attempt.number)
    return ClaimAnswer(
        Work(
            ref,
            job,
            inputs,
            cores=attempt.cores,
            memory_mb=attempt.memory_mb,
            gpus=attempt.gpus,
            token=attempt_token(pilot, ref),
        )
    )


@transaction.atomic
def end_pilot(
    pilot: Pilot,
    *,
    reason: str,
    detail: str,
    now: datetime,
    totals: Mapping[str, float] | None = None,
) -> None:
    """The pilot says goodbye; what it still had waits again. Repeating it changes nothing.

    `totals` is what it tells of its life: cores, and seconds in all and for its checks. What a
    pre-empted pilot still had costs its jobs none of their attempts.
    """
    actor = pilot_actor(pilot)
    why = f"{reason}: {detail}" if detail else reason
    event = "fail" if reason in _FAILED_ENDS else "end"
    applied = lifecycle.apply(event, [pilot.pk], actor=actor, reason=why, ended_at=now)
    if applied.changed:
        Pilot.objects.filter(pk=pilot.pk).update(totals=dict(totals or {}))
    is_preempted = reason == "preempted"
    if is_preempted:
        jobs.spare_attempts_of_pilots([pilot.pk])
    jobs.reschedule_jobs_of_pilots(
        [pilot.pk],
        outcome=Attempt.Outcome.LOST,
        actor=actor,
        reason=f"the pilot ended ({why})",
        is_at_fault=not is_preempted,
    )

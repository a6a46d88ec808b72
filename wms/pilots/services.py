"""What a pilot asks of the server: to be registered, to be heard, to be given a job."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet, Sum

from matching.resources import Resource
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.errors import NotAuthenticated
from wms.jobs import services as jobs
from wms.jobs.attempts import input_blobs, missing_inputs, note_attributes
from wms.jobs.limits import Gate
from wms.jobs.models import Attempt, Blob, Job
from wms.pilots import lifecycle
from wms.pilots.models import Pilot
from wms.pilots.states import TERMINAL, PilotState
from wms.sites.selectors import lapsed_identities
from wms.taskqueues import services as taskqueues

#: A pilot that asked in vain is not made to wait longer than this.
_LONGEST_REST_S = 1.0


@dataclass(frozen=True, slots=True)
class Terms:
    """What a pilot is told when it registers; times in seconds."""

    heartbeat_s: float
    poll_s: float
    idle_limit_s: float
    lifetime_s: float


@dataclass(frozen=True, slots=True)
class AttemptRef:
    """One attempt, as messages name it."""

    job_id: int
    number: int


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed job: everything the pilot must know to run it, and what it may use."""

    attempt: AttemptRef
    job: Job
    inputs: Mapping[str, Blob]
    cores: int
    memory_mb: int
    gpus: int


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """A job, or the reason why there is none."""

    work: Work | None = None
    reason: str = ""


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
        .select_related("queue")
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
            node=dict(node),
            registered_at=now,
            heartbeat_at=now,
        )
        if not applied.changed:
            raise NotAuthenticated
    settings = conf()
    return Terms(
        heartbeat_s=settings.agent_heartbeat_s,
        poll_s=settings.agent_poll_s,
        idle_limit_s=settings.agent_idle_limit_s,
        lifetime_s=float(pilot.queue.wall_time_s),
    )


def authenticate_pilot(uuid: UUID, token: str) -> Pilot:
    """The pilot that holds this token, with all that it can offer. Raises NotAuthenticated."""
    with_offer = Pilot.objects.select_related("queue__site", "owner", "owner_group")
    pilot = with_offer.filter(uuid=uuid).first()
    if pilot is None or not pilot.token_sha256:
        raise NotAuthenticated
    if not hmac.compare_digest(pilot.token_sha256, secret_digest(token)):
        raise NotAuthenticated
    return pilot


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """What the pilot is to do: stop these attempts; take no more work."""

    kill: tuple[AttemptRef, ...] = ()
    is_drained: bool = False


@transaction.atomic
def record_heartbeat(
    pilot: Pilot,
    running: Collection[AttemptRef],
    *,
    now: datetime,
    attributes: Mapping[AttemptRef, Mapping[str, int | str]] | None = None,
) -> HeartbeatAnswer:
    """Note that the pilot lives, welcome it back if it was missed, and answer with commands.

    An attempt that it runs but that is not open any more (job killed, given to another pilot) is
    to be stopped. A pilot that was declared ended is to stop everything. `attributes` is what
    payloads tell of their jobs; only that of open attempts counts.
    """
    Pilot.objects.filter(pk=pilot.pk).update(heartbeat_at=now)
    if pilot.state == PilotState.STALLED:
        actor = pilot_actor(pilot)
        lifecycle.apply("recover", [pilot.pk], actor=actor)
        jobs.recover_jobs_of_pilot(pilot.pk, actor=actor)
    open_attempts = set(
        Attempt.objects.filter(pilot_id=pilot.pk, outcome="").values_list("job_id", "number")
    )
    if attributes:
        told = {(ref.job_id, ref.number): values for ref, values in attributes.items()}
        note_attributes(told, pilot_id=pilot.pk, actor=pilot_actor(pilot))
    gone = tuple(ref for ref in running if (ref.job_id, ref.number) not in open_attempts)
    return HeartbeatAnswer(kill=gone, is_drained=pilot.state in TERMINAL)


def claim_job(pilot: Pilot, resource: Resource, *, claim_key: str, now: datetime) -> ClaimAnswer:
    """Give the pilot a job that fits, bound to it from this moment on, or tell why there is none.

    `resource` is what the pilot says it has free; what its open attempts hold of the queue's offer
    is left out in any case. `claim_key` is the pilot's own name for this claim. Asking again under
    the same key gives the same job, as long as its attempt is open, and never another one.
    A private pilot gets nothing new once its owner's account is switched off or has left its group.
    One that asked in vain a moment ago is answered without a look at what waits: a fruitless draw
    is the dearest one.
    Raises NotAuthenticated when the pilot has ended.
    """
    if pilot.state in TERMINAL:
        raise NotAuthenticated("This pilot has ended; it gets no more work.")
    found = _bind_job(pilot, resource, claim_key, now)
    return ClaimAnswer(reason=found) if isinstance(found, str) else _answer(pilot, found)


@transaction.atomic
def _bind_job(pilot: Pilot, resource: Resource, claim_key: str, now: datetime) -> Attempt | str:
    # The pilot's row first: two claims at once wait for each other here, so that one key never gets
    # two jobs, and no core is given away twice.
    living = Pilot.objects.filter(pk=pilot.pk).exclude(state__in=TERMINAL)
    if not living.update(heartbeat_at=now):
        return "the pilot has ended"
    given = Attempt.objects.filter(pilot_id=pilot.pk, claim_key=claim_key).select_related("job")
    if attempt := given.first():
        return f"the job of this claim is closed: {attempt.outcome}" if attempt.outcome else attempt
    if reason := _must_rest(living, now):
        return reason
    began_s = time.monotonic()
    found = _draw_job(pilot, resource, claim_key, now)
    if isinstance(found, str):
        took = timedelta(seconds=time.monotonic() - began_s)
        living.update(fruitless_at=now + took)
    return found


def _must_rest(asking: QuerySet[Pilot], now: datetime) -> str:
    """Why the pilot asks too soon after it asked in vain, by its row as it is now."""
    rest_s = min(_LONGEST_REST_S, conf().agent_poll_s / 2)
    fruitless_at = asking.values_list("fruitless_at", flat=True).get()
    if not rest_s or fruitless_at is None or now >= fruitless_at + timedelta(seconds=rest_s):
        return ""
    return f"it asked in vain a moment ago: it may ask again {rest_s:g} s after that"


def _draw_job(pilot: Pilot, resource: Resource, claim_key: str, now: datetime) -> Attempt | str:
    identity = pilot.owner, pilot.owner_group
    if reason := lapsed_identities([identity]).get(identity):
        return reason
    free = _free(pilot, resource)
    if not free.cores:
        return "no core of the pilot is free"
    gate = Gate.at(pilot.queue.site.name, now)
    free = replace(free, excluded=gate.reached())
    claimed = taskqueues.claim(
        free, facts=pilot.node, refuses=gate.refuses if gate.limits else None
    )
    if claimed is None:
        return _why_none(free)
    bound = jobs.bind_to_pilot(
        claimed,
        pilot_id=pilot.pk,
        site_name=pilot.queue.site.name,
        host=str(pilot.node.get("hostname", "")),
        free_cores=free.cores,
        actor=pilot_actor(pilot),
        claim_key=claim_key,
    )
    if bound is None:
        return "the job that was drawn is not waiting any more"
    gate.matched(claimed.needs)
    return bound


def _free(pilot: Pilot, resource: Resource) -> Resource:
    """What the pilot says it has free, but no more than its open attempts leave of its queue's."""
    held = Attempt.objects.filter(pilot_id=pilot.pk, outcome="").aggregate(
        cores=Sum("cores", default=0),
        memory_mb=Sum("memory_mb", default=0),
        gpus=Sum("gpus", default=0),
    )
    queue = pilot.queue
    return replace(
        resource,
        cores=_left(queue.cores, held["cores"], resource.cores),
        memory_mb=_left(queue.memory_mb, held["memory_mb"], resource.memory_mb),
        gpus=_left(queue.gpus, held["gpus"], resource.gpus),
    )


def _left(offered: int, held: int, said: int) -> int:
    return max(0, min(offered - held, said))


def _why_none(free: Resource) -> str:
    reason = (
        f"no waiting job fits what a pilot of {free.queue} has free: cores {free.cores}, memory "
        f"{free.memory_mb} MB, GPUs {free.gpus}, time {free.cpu_time_s} s"
    )
    if free.excluded:
        reached = ", ".join(dict.fromkeys(map(str, free.excluded)))
        reason += f"; running limits let no more of these start: {reached}"
    return reason


def _answer(pilot: Pilot, attempt: Attempt) -> ClaimAnswer:
    job = attempt.job
    inputs = input_blobs(job)
    missing = missing_inputs(job, list(inputs))
    if missing:
        reason = f"input files do not exist: {', '.join(missing)}"
        jobs.fail_unrunnable(attempt, actor=pilot_actor(pilot), reason=reason)
        return ClaimAnswer(reason=f"job {job.pk} cannot be run: {reason}")
    return ClaimAnswer(
        Work(
            AttemptRef(job.pk, attempt.number),
            job,
            inputs,
            cores=attempt.cores,
            memory_mb=attempt.memory_mb,
            gpus=attempt.gpus,
        )
    )


@transaction.atomic
def end_pilot(pilot: Pilot, *, reason: str, detail: str, now: datetime) -> None:
    """The pilot says goodbye; what it still had waits again. Repeating it changes nothing."""
    actor = pilot_actor(pilot)
    why = f"{reason}: {detail}" if detail else reason
    event = "fail" if reason == "error" else "end"
    lifecycle.apply(event, [pilot.pk], actor=actor, reason=why, ended_at=now)
    jobs.reschedule_jobs_of_pilots(
        [pilot.pk], outcome=Attempt.Outcome.LOST, actor=actor, reason=f"the pilot ended ({why})"
    )

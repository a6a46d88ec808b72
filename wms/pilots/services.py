"""What a pilot asks of the server: to be registered, to be heard, to be given a job."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from matching.needs import Resource
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.errors import NotAuthenticated
from wms.jobs import services as jobs
from wms.jobs.attempts import input_blobs, missing_inputs
from wms.jobs.models import Attempt, Blob, Job
from wms.pilots import lifecycle
from wms.pilots.models import Pilot
from wms.pilots.states import TERMINAL, PilotState
from wms.taskqueues import services as taskqueues


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
    """A claimed job: everything the pilot must know to run it."""

    attempt: AttemptRef
    job: Job
    inputs: Mapping[str, Blob]


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
    """The pilot that holds this token, with its queue and site. Raises NotAuthenticated."""
    pilot = Pilot.objects.filter(uuid=uuid).select_related("queue__site").first()
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
    pilot: Pilot, running: Collection[AttemptRef], *, now: datetime
) -> HeartbeatAnswer:
    """Note that the pilot lives, welcome it back if it was missed, and answer with commands.

    An attempt that it runs but that is not open any more (job killed, given to another pilot) is
    to be stopped. A pilot that was declared ended is to stop everything.
    """
    Pilot.objects.filter(pk=pilot.pk).update(heartbeat_at=now)
    if pilot.state == PilotState.STALLED:
        actor = pilot_actor(pilot)
        lifecycle.apply("recover", [pilot.pk], actor=actor)
        jobs.recover_jobs_of_pilot(pilot.pk, actor=actor)
    open_attempts = set(
        Attempt.objects.filter(pilot_id=pilot.pk, outcome="").values_list("job_id", "number")
    )
    gone = tuple(ref for ref in running if (ref.job_id, ref.number) not in open_attempts)
    return HeartbeatAnswer(kill=gone, is_drained=pilot.state in TERMINAL)


def claim_job(pilot: Pilot, resource: Resource, *, now: datetime) -> Work | None:
    """Give the pilot a job that fits, bound to it from this moment on; None when there is none.

    A pilot that has a job and asks for one did not get the answer: it is given the same job again.
    """
    if pilot.state in TERMINAL:
        raise NotAuthenticated("This pilot has ended; it gets no more work.")
    attempt = _bind_job(pilot, resource, now)
    return None if attempt is None else _work(pilot, attempt)


@transaction.atomic
def _bind_job(pilot: Pilot, resource: Resource, now: datetime) -> Attempt | None:
    # The pilot's row first: of two claims at once, after a time-out, the second gets the same job.
    living = Pilot.objects.filter(pk=pilot.pk).exclude(state__in=TERMINAL)
    if not living.update(heartbeat_at=now):
        return None
    given = Attempt.objects.filter(pilot_id=pilot.pk, outcome="").select_related("job").first()
    if given is not None:
        return given
    job_id = taskqueues.claim(resource)
    if job_id is None:
        return None
    return jobs.bind_to_pilot(
        job_id,
        pilot_id=pilot.pk,
        site_name=pilot.queue.site.name,
        host=str(pilot.node.get("hostname", "")),
        actor=pilot_actor(pilot),
    )


def _work(pilot: Pilot, attempt: Attempt) -> Work | None:
    job = attempt.job
    inputs = input_blobs(job)
    missing = missing_inputs(job, list(inputs))
    if missing:
        jobs.fail_unrunnable(
            attempt,
            actor=pilot_actor(pilot),
            reason=f"input files do not exist: {', '.join(missing)}",
        )
        return None
    return Work(AttemptRef(job.pk, attempt.number), job, inputs)


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

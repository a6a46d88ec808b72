"""Registration of a pilot, its authentication (secret, token, attempt tokens), and its good-bye.

The answer to a registration has the settings of the queue; the fence that works on the node settles
a queue's `auto`. The good-bye ends the pilot, and its open jobs wait again. Also the actor of what
a pilot does itself.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from django.db import transaction

from matching.task_queues.needs import CONTAINER_TAG
from wms.accounting.models import AccountingGroup
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.database.prepared import Columns
from wms.core.database.statements import one_line, prepared_rows
from wms.core.errors import NotAuthenticated
from wms.core.keyed_digests import is_keyed_digest, keyed_digest
from wms.core.models import User
from wms.jobs.attempts import rescheduling
from wms.jobs.models import Attempt
from wms.jobs.states import JobCause
from wms.pilots import lifecycle
from wms.pilots.models import Pilot
from wms.pilots.protocol.attempt_refs import AttemptRef
from wms.pilots.protocol.sql import FIND_PILOT
from wms.pilots.states import TERMINAL, TOKEN_GRACE
from wms.sites.fence_settling import settle_fence
from wms.sites.models import Queue, Site
from wms.sites.payload_accounts import accounts_of
from wms.sites.services import commission_by_pilot

#: Reasons for which pilots end by themselves; the last two are failures.
ENDS = ("idle", "drained", "lifetime", "terminated", "preempted", "unfit", "error")
_FAILED_ENDS = frozenset({"unfit", "error"})
_SALT = "wms.pilots.attempt"

# With all that it can offer, and nothing else: every request of a pilot begins with it.
_PILOT = Columns(Pilot, "pilot", "uuid", "state", "token_sha256", "node", "published", "ended_at")
_QUEUE = Columns(
    Queue, "queue", "name", "element", "cores", "memory_mb", "gpus", "wall_time_s", "cpu_power",
    "platform",
    "setup", "submit_pool", "tags", "required_tags", "payload_limits",
)  # fmt: skip
_SITE = Columns(Site, "site", "name")
_OWNER = Columns(User, "owner", "username", "is_active")
_GROUP = Columns(AccountingGroup, "owner_group", "name", "has_job_sharing")
_FIND_PILOT = one_line(
    FIND_PILOT.format(pilot=_PILOT, queue=_QUEUE, site=_SITE, owner=_OWNER, owner_group=_GROUP)
)


@dataclass(frozen=True, slots=True)
class RegistrationAnswer:
    """Answer to a registration: settings of the pilot's queue; times in seconds.

    Where the queue `has_containers` the pilot tries whether it can start some.
    """

    heartbeat_s: float
    poll_s: float
    idle_limit_s: float
    lifetime_s: float
    fence: str
    network: str
    limits: Mapping[str, float]
    hold_after_failure_s: int
    shared_folders: Sequence[Mapping[str, Any]]
    has_containers: bool
    accounts: Mapping[str, Any]


def secret_digest(secret: str) -> str:
    """Hash of a secret or token for storage. They are random and long, so it needs no salt."""
    return hashlib.sha256(secret.encode()).hexdigest()


def pilot_actor(pilot: Pilot) -> Actor:
    """Actor of a pilot's own actions."""
    return Actor.pilot(str(pilot.uuid))


@transaction.atomic
def register_pilot(
    uuid: UUID, *, secret: str, token: str, node: Mapping[str, Any], now: datetime
) -> RegistrationAnswer:
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
        commission_by_pilot(pilot.queue.site, actor=pilot_actor(pilot))
    return _terms(pilot)


def _with_fence(node: Mapping[str, Any], pilot: Pilot) -> dict[str, Any]:
    """Facts of the node, with the fence that payloads get, and the one that works there.

    A pilot on whose node the queue's fence does not work runs no payload.
    """
    fence_found = str(node.get("fence", ""))
    if fence_found:
        settle_fence(pilot.queue, fence_found, actor=pilot_actor(pilot))
    fence = pilot.queue.effective_fence or fence_found
    return {**node, "fence": fence, "fence_found": fence_found} if fence else dict(node)


def _terms(pilot: Pilot) -> RegistrationAnswer:
    settings, queue = conf(), pilot.queue
    own = {"wall_s": queue.wall_time_s, "memory_mb": queue.memory_mb}
    limits = {name: limit for name, limit in own.items() if limit} | queue.payload_limits
    return RegistrationAnswer(
        heartbeat_s=settings.agent_heartbeat_s,
        poll_s=settings.agent_poll_s,
        idle_limit_s=settings.agent_idle_limit_s,
        lifetime_s=float(queue.wall_time_s),
        fence=queue.effective_fence or Queue.Fence.AUTO,
        network=queue.network,
        limits=limits,
        # Nothing is sent after a test pilot, so its slot need not be kept.
        hold_after_failure_s=0 if pilot.test else queue.hold_after_failure_s,
        shared_folders=queue.shared_folders,
        has_containers=CONTAINER_TAG in queue.tags,
        accounts=accounts_of(queue),
    )


def authenticate_pilot(
    uuid: UUID, token: str, *, attempt: AttemptRef | None = None, now: datetime
) -> Pilot:
    """Pilot that holds this token, with all that it can offer. Raises NotAuthenticated.

    Messages about one attempt may also carry the token of that attempt. Both end with the pilot,
    `TOKEN_GRACE` after it.
    """
    pilot = _find_pilot(uuid)
    if pilot is None or not pilot.token_sha256:
        raise NotAuthenticated
    if pilot.ended_at is not None and pilot.ended_at <= now - TOKEN_GRACE:
        raise NotAuthenticated
    if attempt is None or not is_keyed_digest(_SALT, _about(pilot, attempt), token):
        require_own_token(pilot, token)
    return pilot


def _find_pilot(uuid: UUID) -> Pilot | None:
    rows = prepared_rows(_FIND_PILOT, {"uuid": uuid})
    if not rows:
        return None
    values = iter(rows[0])

    def of(columns: Columns[Any]) -> tuple[Any, ...]:
        return tuple(islice(values, len(columns)))

    pilot, queue = _PILOT.instance(of(_PILOT)), _QUEUE.instance(of(_QUEUE))
    queue.site = _SITE.instance(of(_SITE))
    pilot.queue = queue
    pilot.owner = _OWNER.joined(of(_OWNER))
    pilot.owner_group = _GROUP.joined(of(_GROUP))
    return pilot


def require_own_token(pilot: Pilot, token: str) -> None:
    """Raise NotAuthenticated unless this is the pilot's token, and not that of an attempt."""
    if not hmac.compare_digest(pilot.token_sha256, secret_digest(token)):
        raise NotAuthenticated


def attempt_token(pilot: Pilot, attempt: AttemptRef) -> str:
    """Token for messages about this attempt only: a payload's side of the pilot gets it.

    It is derived and not stored, so that a claim whose answer was lost is given the same again.
    """
    return keyed_digest(_SALT, _about(pilot, attempt))


def _about(pilot: Pilot, attempt: AttemptRef) -> str:
    return f"{pilot.token_sha256} {attempt.job_id} {attempt.number}"


@transaction.atomic
def end_pilot(
    pilot: Pilot,
    *,
    end: str,
    detail: str,
    now: datetime,
    totals: Mapping[str, float] | None = None,
) -> None:
    """End a pilot at its last message; its open jobs wait again. Repeating it changes nothing.

    `end` is one of `ENDS`, `detail` says it to people. `totals` are cores, and seconds in all and
    for its checks. Jobs of a pre-empted pilot lose none of their attempts.
    """
    actor = pilot_actor(pilot)
    why = f"{end}: {detail}" if detail else end
    event = "fail" if end in _FAILED_ENDS else "end"
    applied = lifecycle.apply(event, [pilot.pk], actor=actor, reason=why, ended_at=now)
    if applied.changed:
        Pilot.objects.filter(pk=pilot.pk).update(totals=dict(totals or {}))
    is_preempted = end == "preempted"
    if is_preempted:
        rescheduling.spare_attempts_of_pilots([pilot.pk])
    rescheduling.reschedule_jobs_of_pilots(
        [pilot.pk],
        outcome=Attempt.Outcome.LOST,
        actor=actor,
        reason=f"the pilot ended ({why})",
        cause=_cause_of(end, is_told=bool(applied.changed)),
        is_at_fault=not is_preempted,
    )


def _cause_of(end: str, *, is_told: bool) -> JobCause:
    """Cause why the jobs of an ended pilot run again; `is_told`: its own event tells it."""
    if end == "preempted":
        return JobCause.PREEMPTED
    return JobCause.PILOT_FAILED if is_told and end in _FAILED_ENDS else JobCause.PILOT_ENDED

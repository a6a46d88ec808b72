"""Heartbeat of a pilot: recorded with usage and attributes of its jobs, commands in the answer.

A stalled pilot is recovered with its jobs. Thousands of pilots send heartbeats, so one without
attributes or commands costs one statement.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from wms.core.actors import Actor
from wms.core.database.statements import prepared_rows
from wms.core.errors import NotAuthenticated
from wms.jobs.attempts import rescheduling
from wms.jobs.attempts.guard import note_late
from wms.jobs.attempts.progress import note_attributes
from wms.jobs.models import Attempt
from wms.jobs.payload_tokens import PayloadToken, token_for
from wms.pilots import lifecycle
from wms.pilots.protocol.attempt_refs import AttemptRef
from wms.pilots.protocol.sql import RECORD_HEARTBEAT
from wms.pilots.states import TERMINAL, TOKEN_GRACE, PilotState


@dataclass(frozen=True, slots=True)
class Credential:
    """Credential of a pilot: its id, and the hash of its token."""

    uuid: UUID
    token_sha256: str


@dataclass(frozen=True, slots=True)
class HeartbeatMessage:
    """Content of one heartbeat: attempts at hand with their attributes and usage.

    `sequence` counts the pilot's heartbeats from 1 on; 0 is of a pilot that does not count.
    `facts` of its node are those that became known or changed since: the network of its payloads,
    and the time that its batch system leaves. Payloads of `wants_token` need another one soon.
    """

    running: tuple[AttemptRef, ...] = ()
    attributes: Mapping[AttemptRef, Mapping[str, int | str]] = field(default_factory=dict)
    usage: Mapping[AttemptRef, Mapping[str, float]] = field(default_factory=dict)
    load: Mapping[str, float] | None = None
    is_draining: bool = False
    sequence: int = 0
    validation_s: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    wants_token: tuple[AttemptRef, ...] = ()


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """Commands to the pilot: attempts to stop, attempts to peek at, drain; tokens of payloads."""

    kill: tuple[AttemptRef, ...] = ()
    kill_reasons: Mapping[AttemptRef, str] = field(default_factory=dict)
    peek: tuple[AttemptRef, ...] = ()
    is_drained: bool = False
    drain_reason: str = ""
    tokens: Mapping[AttemptRef, PayloadToken] = field(default_factory=dict)


def record_heartbeat(
    credential: Credential, beat: HeartbeatMessage, *, now: datetime
) -> HeartbeatAnswer:
    """Record a heartbeat, recover a stalled pilot, and answer with commands.

    An attempt that it runs but that is not open any more (job killed, given to another pilot) is to
    be stopped. A pilot that was declared ended is to stop everything; after `TOKEN_GRACE` it is not
    known any more. Reports on attempts count for the open ones only. Raises NotAuthenticated.
    """
    rows = prepared_rows(RECORD_HEARTBEAT, _parameters(credential, beat, now))
    if not rows:
        raise NotAuthenticated
    pilot_id, state, state_reason, drain_reason, attempts_json = rows[0]
    open_attempts = json.loads(attempts_json or "[]")
    attempts = {AttemptRef(job_id, number): wanted for job_id, number, wanted in open_attempts}
    actor = Actor.pilot(str(credential.uuid))
    if state == PilotState.STALLED:
        _welcome_back(pilot_id, actor)
    if beat.attributes:
        attributes = {(ref.job_id, ref.number): values for ref, values in beat.attributes.items()}
        note_attributes(attributes, pilot_id=pilot_id, actor=actor)
    has_ended = state in TERMINAL
    gone = tuple(ref for ref in beat.running if ref not in attempts)
    return HeartbeatAnswer(
        kill=gone,
        kill_reasons=_why_gone(pilot_id, gone, actor) if gone else {},
        peek=tuple(ref for ref in beat.running if attempts.get(ref)),
        is_drained=has_ended or bool(drain_reason),
        drain_reason=state_reason if has_ended else drain_reason,
        tokens=_tokens(pilot_id, [ref for ref in beat.wants_token if ref in attempts], now),
    )


def _tokens(
    pilot_id: int, refs: Sequence[AttemptRef], now: datetime
) -> dict[AttemptRef, PayloadToken]:
    """Tokens of payloads for these open attempts, as far as their jobs ask for some."""
    if not refs:
        return {}
    attempts = Attempt.objects.filter(
        pilot_id=pilot_id, outcome="", job_id__in={ref.job_id for ref in refs}
    )
    found = {}
    for attempt in attempts.select_related("job__description"):
        ref = AttemptRef(attempt.job_id, attempt.number)
        token = token_for(attempt, now=now) if ref in refs else None
        if token is not None:
            found[ref] = token
    return found


def _parameters(credential: Credential, beat: HeartbeatMessage, now: datetime) -> dict[str, Any]:
    usage = [
        {"job_id": ref.job_id, "number": ref.number, "usage": dict(used)}
        for ref, used in beat.usage.items()
    ]
    return {
        "uuid": credential.uuid,
        "digest": credential.token_sha256,
        "now": now,
        "ended_since": now - TOKEN_GRACE,
        "sequence": beat.sequence,
        "load": None if beat.load is None else json.dumps(dict(beat.load)),
        "is_draining": beat.is_draining,
        "validation_s": beat.validation_s,
        "facts": json.dumps(dict(beat.facts)),
        "usage": json.dumps(usage),
    }


@transaction.atomic
def _welcome_back(pilot_id: int, actor: Actor) -> None:
    lifecycle.apply("recover", [pilot_id], actor=actor)
    rescheduling.recover_jobs_of_pilot(pilot_id, actor=actor)


def _why_gone(pilot_id: int, gone: tuple[AttemptRef, ...], actor: Actor) -> dict[AttemptRef, str]:
    """Reasons why these attempts are to be stopped; lost ones are recorded."""
    attempts = Attempt.objects.filter(pilot_id=pilot_id, job_id__in={ref.job_id for ref in gone})
    reasons = {}
    for attempt in attempts:
        ref = AttemptRef(attempt.job_id, attempt.number)
        if ref not in gone:
            continue
        reasons[ref] = attempt.reason
        if attempt.outcome == Attempt.Outcome.LOST and not attempt.stopped_by:
            note_late(ref.job_id, ref.number, "heartbeat", actor=actor)
    return reasons

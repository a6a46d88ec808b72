"""Pilots of remote frontends as their batch system sees them, which is all that is known of them.

They register elsewhere, so nothing is heard of them here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from wms.core.actors import Actor
from wms.elements.protocol import BatchState
from wms.elements.protocol import PilotState as BatchPilot
from wms.pilots import lifecycle
from wms.pilots.models import Pilot
from wms.pilots.states import PENDING, PilotState

_ACTOR = Actor.system("pilot-monitor")


def note_remote_starts(pilots: Iterable[Pilot], states: Mapping[str, BatchPilot]) -> None:
    """Let pilots run here that their batch system has begun."""
    begun = [
        pilot
        for pilot in pilots
        if pilot.is_remote
        and pilot.state in PENDING
        and states[pilot.native_id].state == BatchState.RUNNING
    ]
    _start(begun)


def end_remote(pilot: Pilot, state: BatchState, words: str, now: datetime) -> None:
    """End a pilot as its batch system says that it has ended; one that it lost has failed."""
    reason = f"the batch system says: {words}"
    if state == BatchState.DONE:
        _start([pilot] if pilot.state in PENDING else [])
        lifecycle.apply("end", [pilot.pk], actor=_ACTOR, reason=reason, ended_at=now)
    elif state == BatchState.CANCELLED:
        lifecycle.apply("remove", [pilot.pk], actor=_ACTOR, reason=reason, ended_at=now)
    else:
        event = "abort" if pilot.state in PENDING else "fail"
        lifecycle.apply(event, [pilot.pk], actor=_ACTOR, reason=reason, ended_at=now)


def _start(pilots: Iterable[Pilot]) -> None:
    applied = lifecycle.apply("start", [pilot.pk for pilot in pilots], actor=_ACTOR)
    for pilot in pilots:
        if pilot.pk in applied.changed:
            pilot.state = PilotState.RUNNING

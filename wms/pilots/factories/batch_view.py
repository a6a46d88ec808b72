"""Pilots of remote frontends as their batch system sees them, which is all that is known of them.

They register elsewhere, so nothing is heard of them here. Of those that went wrong the end of their
logs is kept, until their frontend was told.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from wms.core.actors import Actor
from wms.elements.protocol import BatchState
from wms.elements.protocol import PilotState as BatchPilot
from wms.factories.messages import MOST_LOG
from wms.pilots import lifecycle
from wms.pilots.factory_models import RemoteOrder
from wms.pilots.models import Pilot
from wms.pilots.monitoring.access import Access
from wms.pilots.monitoring.fault_isolation import faults_contained
from wms.pilots.states import PENDING, PilotState

_ACTOR = Actor.system("pilot-monitor")
#: Each log is a question to the batch system: a poll asks for so many, for so long.
_LOGS_AT_ONCE = 10
_LOGS_FOR_S = 10.0
#: What the exchange does not carry, or a terminal would not show.
_NOT_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


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


def keep_logs(access: Access, ended: Sequence[Pilot], states: Mapping[str, BatchPilot]) -> None:
    """Keep the ends of logs of remote pilots that went wrong, before they are told to have ended.

    Of many at once the first; one whose log cannot be had has none.
    """
    wrong = [
        pilot
        for pilot in ended
        if pilot.is_remote and states[pilot.native_id].state != BatchState.DONE
    ]
    if not wrong:
        return
    until = time.monotonic() + _LOGS_FOR_S
    with faults_contained("pilot_log_failed", access.queue):
        element = access.element()
        for pilot in wrong[:_LOGS_AT_ONCE]:
            text = _NOT_TEXT.sub("?", element.log(pilot.native_id, MOST_LOG))
            RemoteOrder.objects.filter(pilot=pilot).update(log=text[-MOST_LOG:])
            if time.monotonic() > until:
                break


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

"""Lifecycle of pilots: applies state changes and writes events, failures announced for grouping.

Also events without a change of state (drain).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from wms.core.actors import Actor
from wms.core.models import InboxEntry
from wms.core.statemachine import StateMachine
from wms.core.transitions import Applied
from wms.pilots.models import Pilot, PilotEvent
from wms.pilots.states import NOTES, TRANSITIONS

#: The inbox of events that tell why pilots went wrong, and what these are.
FAILURE_TOPIC = "failed-pilots"
FAILURES = frozenset({"fail", "abort"})

_MACHINE = StateMachine(
    model=Pilot,
    event_model=PilotEvent,
    subject="pilot",
    transitions=TRANSITIONS,
    observed=FAILURES,
    observers=FAILURE_TOPIC,
    kind=InboxEntry.Kind.PILOT_EVENT,
)


def apply(
    event: str,
    pilot_ids: Collection[int],
    *,
    actor: Actor,
    reason: str = "",
    facts: Mapping[int, Mapping[str, Any]] | None = None,
    **changes: Any,
) -> Applied:
    """Apply one event to pilots; failures go into the inbox of who looks for their causes."""
    applied, _ = _MACHINE.apply(
        event, pilot_ids, actor=actor, reason=reason, facts=facts, **changes
    )
    return applied


def note(event: str, facts: Mapping[int, Mapping[str, Any]], *, actor: Actor) -> None:
    """Write an event that changes no state of these pilots, with its facts."""
    _MACHINE.note(event, facts, states=NOTES[event], actor=actor)

"""The one place where a group of failures changes its state."""

from __future__ import annotations

from wms.core.statemachine import StateMachine
from wms.failures.models import FailureGroup, FailureGroupEvent
from wms.failures.states import TRANSITIONS

MACHINE = StateMachine(
    model=FailureGroup, event_model=FailureGroupEvent, subject="group", transitions=TRANSITIONS
)

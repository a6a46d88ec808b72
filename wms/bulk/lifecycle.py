"""The one place where a bulk operation changes its state."""

from __future__ import annotations

from wms.bulk.models import BulkOperation, BulkOperationEvent
from wms.bulk.states import TRANSITIONS
from wms.core.statemachine import StateMachine

OPERATIONS = StateMachine(
    model=BulkOperation,
    event_model=BulkOperationEvent,
    subject="operation",
    transitions=TRANSITIONS,
)
#: The task that carries operations out.
RUN_TASK = "wms.bulk.run"

"""State machine of bulk operations, the only code that changes their state.

Also the name of the Celery task that runs confirmed operations.
"""

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
#: Name of the task that runs operations.
RUN_TASK = "wms.bulk.run"

"""State machine of failure groups, and topics of inboxes on failures.

The topics announce new groups, regressed groups, and DAGs whose nodes fail.
"""

from __future__ import annotations

from wms.core.models import InboxEntry
from wms.core.statemachine import StateMachine
from wms.failures.models import FailureGroup, FailureGroupEvent
from wms.failures.states import TRANSITIONS

#: The inboxes of groups that are new, by their ids, and of the events of those that regressed.
NEW_TOPIC = "failure-new"
REGRESSED_TOPIC = "failure-again"
#: The inbox of DAGs whose nodes failed, by their ids.
FAILING_TOPIC = "dag-failing"

MACHINE = StateMachine(
    model=FailureGroup,
    event_model=FailureGroupEvent,
    subject="group",
    transitions=TRANSITIONS,
    observed=frozenset({"regress"}),
    observers=REGRESSED_TOPIC,
    kind=InboxEntry.Kind.GROUP_EVENT,
)

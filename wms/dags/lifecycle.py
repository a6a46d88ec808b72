"""State changes of DAGs by their state machine, with events, and the end of their matches.

Also the names of the engine's inboxes and messages to it, the events of which people are notified,
names of tasks to wake, and the columns of a DAG without a site. State changes of nodes are in
`wms.dags.engine.transitions`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from wms.core.actors import Actor
from wms.core.inbox import announce
from wms.core.models import InboxEntry
from wms.core.statemachine import StateMachine
from wms.core.transitions import Applied
from wms.dags.models import Dag, DagEvent, MatchRecord
from wms.dags.states import DAG_TRANSITIONS
from wms.placement.space_plans.storing import forget_plans

#: The inbox of job events, and of DAG events after which the engine has something to do.
JOB_TOPIC = "dag-jobs"
CONTROL_TOPIC = "dag-control"
#: The inboxes of the ends of scripts, of inner DAGs, and of placement requests.
SCRIPT_TOPIC = "dag-scripts"
INNER_TOPIC = "dag-inner"
DATA_TOPIC = "dag-data"
TOPICS = (JOB_TOPIC, CONTROL_TOPIC, SCRIPT_TOPIC, INNER_TOPIC, DATA_TOPIC)
#: The task that matches idle DAGs.
NEGOTIATE_TASK = "wms.dags.negotiate"
#: The task that reads all of these inboxes.
ADVANCE_TASK = "wms.dags.advance"

#: The inbox of events of DAGs that people want to hear of, and what these are.
NOTIFICATION_TOPIC = "dag-news"
#: The inbox of gates that have begun to wait for a person.
GATE_TOPIC = "dag-gates"
NOTIFIED_EVENTS = frozenset({"complete", "fail", "remove", "hold", "halt"})

_DAGS = StateMachine(
    model=Dag,
    event_model=DagEvent,
    subject="dag",
    transitions=DAG_TRANSITIONS,
    observed=NOTIFIED_EVENTS,
    observers=NOTIFICATION_TOPIC,
    has_causes=True,
    kind=InboxEntry.Kind.DAG_EVENT,
)
_WAKES_ENGINE = frozenset({"match", "resume", "begin", "halt"})
_ENDS_MATCH = frozenset({"complete", "fail", "remove"})
#: The columns of a DAG that has no site.
UNBOUND: Mapping[str, Any] = {
    "site": None,
    "matched_at": None,
    "match_attributes": {},
    "environment": {},
    "substitutions": {},
}


@transaction.atomic
def apply_to_dags(
    event: str,
    dag_ids: Collection[int],
    *,
    actor: Actor,
    reason: str = "",
    cause: str = "",
    facts: Mapping[int, Mapping[str, Any]] | None = None,
    **changes: Any,
) -> Applied:
    """Apply one event to DAGs; the engine is notified of those that it has to continue.

    When the event ends a DAG for good, its stay at its site ends as well.
    """
    if event in _ENDS_MATCH:
        # It may have been looking for another site while its last jobs ran.
        changes |= {"unmatched_reason": "", "unmatched_kind": ""}
    applied, _ = _DAGS.apply(
        event, dag_ids, actor=actor, reason=reason, cause=cause, facts=facts, **changes
    )
    if event in _WAKES_ENGINE:
        notify_engine_to_start(*applied.changed)
    if event in _ENDS_MATCH:
        end_matches(applied.changed, end=MatchRecord.End(event), reason=reason)
        forget_plans(applied.changed)
    return applied


def end_matches(
    dag_ids: Collection[int], *, end: MatchRecord.End, reason: str, avoid_s: float | None = None
) -> None:
    """Close the open match records of these DAGs; they avoid the site for `avoid_s` from now."""
    avoided_until = None if avoid_s is None else Now() + timedelta(seconds=avoid_s)
    MatchRecord.objects.filter(dag_id__in=dag_ids, ended_at=None).update(
        ended_at=Now(), end=end, reason=reason, avoided_until=avoided_until
    )


def notify_engine(*dag_ids: int) -> None:
    """Put entries for these DAGs into the engine's inbox, after this transaction."""
    _notify(InboxEntry.Kind.LOOK, dag_ids)


def notify_engine_to_start(*dag_ids: int) -> None:
    """Wake the engine after this transaction to look for nodes that can start."""
    _notify(InboxEntry.Kind.BEGIN, dag_ids)


def _notify(kind: InboxEntry.Kind, dag_ids: Collection[int]) -> None:
    announce(InboxEntry(topic=CONTROL_TOPIC, key=dag_id, kind=kind) for dag_id in dag_ids)

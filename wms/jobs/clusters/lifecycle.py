"""Lifecycle of clusters: applies their state changes and writes their events.

Also wakes the materialiser, and has the names of its task and of the topic that announces new
waiting jobs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.utils import timezone

from wms.core.actors import Actor
from wms.core.inbox import announce
from wms.core.models import InboxEntry
from wms.core.statemachine import StateMachine
from wms.core.transitions import Applied
from wms.jobs.clusters.states import CLUSTER_NOTES, CLUSTER_TRANSITIONS, TOPIC, ClusterState
from wms.jobs.models import Cluster, ClusterEvent

#: The task that reads the events of clusters' jobs, and makes further jobs.
MATERIALISE_TASK = "wms.jobs.materialise"
#: Who is woken when jobs have come to wait: a higher app registers its task.
NEW_JOBS_TOPIC = "new-jobs"
MATERIALISER = Actor.system("job-materialiser")
SUBMIT_EVENT = "submit"

_MACHINE = StateMachine(
    model=Cluster,
    event_model=ClusterEvent,
    subject="cluster",
    transitions=CLUSTER_TRANSITIONS,
    has_causes=True,
)


def apply(
    event: str,
    cluster_ids: Collection[int],
    *,
    actor: Actor,
    reason: str = "",
    cause: str = "",
    facts: Mapping[int, Mapping[str, Any]] | None = None,
    **changes: Any,
) -> Applied:
    """Move clusters by one event. Raises ReasonRequired."""
    applied, _ = _MACHINE.apply(
        event, cluster_ids, actor=actor, reason=reason, cause=cause, facts=facts, **changes
    )
    return applied


def note(event: str, facts: Mapping[int, Mapping[str, Any]], *, actor: Actor) -> None:
    """Write an event of clusters that changes no state, with its facts."""
    _MACHINE.note(event, facts, states=CLUSTER_NOTES[event], actor=actor)


def note_submission(cluster: Cluster, facts: Mapping[str, Any], *, actor: Actor) -> None:
    """Write the first event of a cluster that was stored just now."""
    ClusterEvent.objects.create(
        cluster=cluster,
        event=SUBMIT_EVENT,
        to_state=ClusterState.ACTIVE,
        actor=actor.name,
        facts={**facts, **actor.facts},
        created_at=timezone.now(),
    )


def wake_materialiser(*cluster_ids: int) -> None:
    """Have the materialiser look at these clusters once this transaction is committed."""
    announce(
        InboxEntry(topic=TOPIC, key=cluster_id, kind=InboxEntry.Kind.LOOK)
        for cluster_id in cluster_ids
    )

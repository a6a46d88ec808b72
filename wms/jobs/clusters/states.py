"""States of clusters, transitions, causes, events that change no state, and the inbox topic."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import models

from wms.core.transitions import Transition, TransitionTable

#: The inbox of the events of clusters' jobs.
TOPIC = "cluster"


class ClusterState(models.TextChoices):
    """States of a cluster."""

    ACTIVE = "active", "active"
    HELD = "held", "held"
    COMPLETED = "completed", "completed"
    REMOVED = "removed", "removed"


class ClusterCause(models.TextChoices):
    """Causes of a cluster's state, for code; the reason beside them is for people."""

    PERSON = "person", "somebody wanted it"
    DEADLINE = "deadline", "its deadline has passed"
    MATERIALISER = "materialiser", "the materialiser could not go on with it"


_S = ClusterState
CLUSTER_TERMINAL = frozenset({_S.COMPLETED.value, _S.REMOVED.value})
CLUSTER_ALIVE = frozenset({_S.ACTIVE.value, _S.HELD.value})


def _step(*sources: ClusterState, to: ClusterState, needs_reason: bool = False) -> Transition:
    return Transition(frozenset(s.value for s in sources), to.value, needs_reason)


CLUSTER_TRANSITIONS: TransitionTable = {
    "hold": _step(_S.ACTIVE, to=_S.HELD, needs_reason=True),
    "release": _step(_S.HELD, to=_S.ACTIVE),
    "complete": _step(_S.ACTIVE, _S.HELD, to=_S.COMPLETED),
    "remove": _step(_S.ACTIVE, _S.HELD, to=_S.REMOVED, needs_reason=True),
}

#: Events that change no state, with the states in which they are written.
CLUSTER_NOTES: Mapping[str, frozenset[str]] = {
    "change": CLUSTER_ALIVE,
    "prolong": CLUSTER_TERMINAL,
    "remove_outputs": CLUSTER_TERMINAL,
}

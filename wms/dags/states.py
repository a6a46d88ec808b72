"""The states of DAGs and of their nodes, and what leads from one to another."""

from __future__ import annotations

from django.db import models

from wms.core.transitions import Transition, TransitionTable


class DagState(models.TextChoices):
    """Where a DAG is in its life."""

    IDLE = "idle", "idle"
    RUNNING = "running", "running"
    HELD = "held", "held"
    COMPLETED = "completed", "completed"
    FAILED = "failed", "failed"
    REMOVED = "removed", "removed"


class NodeState(models.TextChoices):
    """Where a node is in its life."""

    WAITING = "waiting", "waiting"
    READY = "ready", "ready"
    SUBMITTED = "submitted", "submitted"
    DONE = "done", "done"
    FAILED = "failed", "failed"
    FUTILE = "futile", "futile"


_D = DagState
_N = NodeState
DAG_TERMINAL = frozenset({_D.COMPLETED.value, _D.FAILED.value, _D.REMOVED.value})
#: States in which a DAG is bound to a site, and counts there.
DAG_ACTIVE = frozenset({_D.RUNNING.value, _D.HELD.value})
NODE_TERMINAL = frozenset({_N.DONE.value, _N.FAILED.value, _N.FUTILE.value})


def _step(
    *sources: models.TextChoices, to: models.TextChoices, needs_reason: bool = False
) -> Transition:
    return Transition(frozenset(str(s.value) for s in sources), str(to.value), needs_reason)


DAG_TRANSITIONS: TransitionTable = {
    "match": _step(_D.IDLE, to=_D.RUNNING),
    "hold": _step(_D.IDLE, _D.RUNNING, to=_D.HELD, needs_reason=True),
    # A DAG that was bound when it was held goes on at its site; another one is negotiated anew.
    "resume": _step(_D.HELD, to=_D.RUNNING),
    "release": _step(_D.HELD, to=_D.IDLE),
    "rematch": _step(_D.RUNNING, _D.HELD, to=_D.IDLE, needs_reason=True),
    # An idle DAG ends when its last nodes were left to finish at the site that it was taken from.
    "complete": _step(_D.IDLE, _D.RUNNING, _D.HELD, to=_D.COMPLETED),
    "fail": _step(_D.IDLE, _D.RUNNING, _D.HELD, to=_D.FAILED, needs_reason=True),
    "remove": _step(_D.IDLE, _D.RUNNING, _D.HELD, to=_D.REMOVED, needs_reason=True),
}

NODE_TRANSITIONS: TransitionTable = {
    "make ready": _step(_N.WAITING, to=_N.READY),
    "submit": _step(_N.READY, to=_N.SUBMITTED),
    "succeed": _step(_N.SUBMITTED, to=_N.DONE),
    "retry": _step(_N.SUBMITTED, to=_N.READY, needs_reason=True),
    # Its job was taken out of a TaskQueue before it ran; unlike a retry, this is not counted.
    "recall": _step(_N.SUBMITTED, to=_N.READY, needs_reason=True),
    "fail": _step(_N.READY, _N.SUBMITTED, to=_N.FAILED, needs_reason=True),
    "give up": _step(_N.WAITING, to=_N.FUTILE, needs_reason=True),
}

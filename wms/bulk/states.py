"""States and transitions of bulk operations, and outcomes of their objects."""

from __future__ import annotations

from django.db import models

from wms.core.transitions import Transition, TransitionTable


class BulkState(models.TextChoices):
    """State of a bulk operation."""

    PREVIEW = "preview", "preview"
    CONFIRMED = "confirmed", "confirmed"
    RUNNING = "running", "running"
    STOPPED = "stopped", "stopped"
    DONE = "done", "done"


class Outcome(models.TextChoices):
    """Outcome of an object in an operation."""

    PENDING = "pending", "pending"
    DONE = "done", "done"
    SKIPPED = "skipped", "skipped"
    FAILED = "failed", "failed"


def _step(*sources: BulkState, to: BulkState) -> Transition:
    return Transition(frozenset(s.value for s in sources), to.value)


_S = BulkState
#: States in which batches run.
ACTIVE = frozenset({_S.CONFIRMED.value, _S.RUNNING.value})
TERMINAL = frozenset({_S.STOPPED.value, _S.DONE.value})

TRANSITIONS: TransitionTable = {
    "confirm": _step(_S.PREVIEW, to=_S.CONFIRMED),
    "begin": _step(_S.CONFIRMED, to=_S.RUNNING),
    "end": _step(_S.CONFIRMED, _S.RUNNING, to=_S.DONE),
    "stop": _step(_S.CONFIRMED, _S.RUNNING, to=_S.STOPPED),
}

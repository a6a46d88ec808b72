"""States of schedules and their transitions; outcomes of their times."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import models

from wms.core.transitions import Transition, TransitionTable


class ScheduleState(models.TextChoices):
    """State of a schedule."""

    ACTIVE = "active", "active"
    PAUSED = "paused", "paused"
    REMOVED = "removed", "removed"


class RunOutcome(models.TextChoices):
    """What became of a time of a schedule."""

    SUBMITTED = "submitted", "a DAG was submitted"
    OVERLAP = "overlap", "the DAG before had not ended"
    MISSED = "missed", "it was too late"
    FAILED = "failed", "the DAG was refused"


_S = ScheduleState
TERMINAL = frozenset({_S.REMOVED.value})
ALIVE = frozenset({_S.ACTIVE.value, _S.PAUSED.value})
#: Outcomes that the owner is told of.
TOLD = frozenset({RunOutcome.FAILED.value, RunOutcome.MISSED.value})


def _step(*sources: ScheduleState, to: ScheduleState) -> Transition:
    return Transition(frozenset(s.value for s in sources), to.value, needs_reason=True)


TRANSITIONS: TransitionTable = {
    "pause": _step(_S.ACTIVE, to=_S.PAUSED),
    "resume": _step(_S.PAUSED, to=_S.ACTIVE),
    "remove": _step(_S.ACTIVE, _S.PAUSED, to=_S.REMOVED),
}

#: Events that change no state, with the states in which they are written.
NOTES: Mapping[str, frozenset[str]] = {"change": ALIVE, "run": ALIVE}

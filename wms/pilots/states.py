"""States of pilots, transitions between them, events that change no state, and kinds of tests.

Also how long an ended pilot's token is still accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from django.db import models

from wms.core.transitions import Transition, TransitionTable


class PilotState(models.TextChoices):
    """State of a pilot, from its submission to its end."""

    SUBMITTED = "submitted", "submitted"
    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    STALLED = "stalled", "stalled"
    DONE = "done", "done"
    FAILED = "failed", "failed"
    ABORTED = "aborted", "aborted"
    REMOVED = "removed", "removed"


class PilotTest(models.TextChoices):
    """What a test pilot is for; one that is none was sent for the jobs that wait."""

    NONE = "", "none"
    CHECKS = "checks", "checks of the node only"
    JOBS = "jobs", "checks of the node, then jobs"


_S = PilotState
TERMINAL = frozenset({_S.DONE.value, _S.FAILED.value, _S.ABORTED.value, _S.REMOVED.value})
#: States in which a pilot counts against its queue's limits.
ALIVE = frozenset({_S.SUBMITTED.value, _S.QUEUED.value, _S.RUNNING.value, _S.STALLED.value})
#: States before the pilot has called in.
PENDING = frozenset({_S.SUBMITTED.value, _S.QUEUED.value})


def _step(*sources: PilotState, to: PilotState, needs_reason: bool = False) -> Transition:
    return Transition(frozenset(s.value for s in sources), to.value, needs_reason)


TRANSITIONS: TransitionTable = {
    "queue": _step(_S.SUBMITTED, to=_S.QUEUED),
    # A pilot may call in before the batch system's answer to its submission is stored.
    "register": _step(_S.SUBMITTED, _S.QUEUED, to=_S.RUNNING),
    # One that registers elsewhere is seen to run by its batch system only.
    "start": _step(_S.SUBMITTED, _S.QUEUED, to=_S.RUNNING),
    "stall": _step(_S.RUNNING, to=_S.STALLED, needs_reason=True),
    "recover": _step(_S.STALLED, to=_S.RUNNING),
    "end": _step(_S.RUNNING, _S.STALLED, to=_S.DONE),
    "fail": _step(_S.RUNNING, _S.STALLED, to=_S.FAILED, needs_reason=True),
    "abort": _step(_S.SUBMITTED, _S.QUEUED, to=_S.ABORTED, needs_reason=True),
    "remove": _step(
        _S.SUBMITTED, _S.QUEUED, _S.RUNNING, _S.STALLED, to=_S.REMOVED, needs_reason=True
    ),
}

#: A pilot that has ended may say its last words for so long; then its token is worth nothing. One
#: that was given up wrongly and comes back later is told to stop at once, which is all that is left
#: for it to do: its jobs belong to others.
TOKEN_GRACE = timedelta(minutes=15)

#: Events that change no state, with the states in which they are written.
NOTES: Mapping[str, frozenset[str]] = {"drain": ALIVE, "test": PENDING}

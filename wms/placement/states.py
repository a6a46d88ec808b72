"""Kinds of placement requests, their states, and transitions between these."""

from __future__ import annotations

from typing import Final

from django.db import models

from wms.core.transitions import Transition, TransitionTable

#: Attempts of a request, unless its DAG tells otherwise.
MAX_ATTEMPTS: Final = 10


class RequestKind(models.TextChoices):
    """Kind of a request. `reserve` of older requests is an allocation."""

    TRANSFER = "transfer", "transfer of a file"
    ALLOCATE = "allocate", "allocation of space"
    RELEASE = "release", "release of an allocation"
    STAGE = "stage", "staging of a file"
    REMOVE = "remove", "removal of a file"


class RequestState(models.TextChoices):
    """States of a placement request."""

    RECEIVED = "received", "request received"
    PROCESSING = "processing", "processing request"
    RESCHEDULED = "rescheduled", "request rescheduled"
    COMPLETED = "completed", "request completed"
    FAILED = "failed", "request failed"
    REMOVED = "removed", "request removed"


_S = RequestState
TERMINAL = frozenset({_S.COMPLETED.value, _S.FAILED.value, _S.REMOVED.value})
#: States of requests that have not ended.
ALIVE = frozenset(RequestState.values) - TERMINAL
#: States in which a request waits for its next attempt.
WAITING = frozenset({_S.RECEIVED.value, _S.RESCHEDULED.value})


def _step(*sources: RequestState, to: RequestState, needs_reason: bool = False) -> Transition:
    return Transition(frozenset(s.value for s in sources), to.value, needs_reason)


TRANSITIONS: TransitionTable = {
    "start": _step(_S.RECEIVED, _S.RESCHEDULED, to=_S.PROCESSING),
    "give_back": _step(_S.PROCESSING, to=_S.RECEIVED),
    "put_off": _step(_S.PROCESSING, to=_S.RESCHEDULED, needs_reason=True),
    "complete": _step(_S.PROCESSING, to=_S.COMPLETED),
    "reschedule": _step(_S.PROCESSING, to=_S.RESCHEDULED, needs_reason=True),
    "fail": _step(_S.PROCESSING, to=_S.FAILED, needs_reason=True),
    "retry": _step(_S.FAILED, _S.REMOVED, to=_S.RECEIVED, needs_reason=True),
    "remove": _step(_S.RECEIVED, _S.PROCESSING, _S.RESCHEDULED, to=_S.REMOVED, needs_reason=True),
}

"""Kinds, states and transitions of trials."""

from __future__ import annotations

from django.db import models

from wms.core.transitions import Transition, TransitionTable


class TrialKind(models.TextChoices):
    """What is done with the files of a trial."""

    CHECK = "check", "check"
    DRY_RUN = "dry_run", "dry run"


class TrialState(models.TextChoices):
    """State of a trial."""

    WAITING = "waiting", "waiting"
    RUNNING = "running", "running"
    DONE = "done", "done"
    FAILED = "failed", "failed"
    STOPPED = "stopped", "stopped"


_S = TrialState
ACTIVE = frozenset({_S.WAITING.value, _S.RUNNING.value})
TERMINAL = frozenset({_S.DONE.value, _S.FAILED.value, _S.STOPPED.value})


def _step(*sources: TrialState, to: TrialState, needs_reason: bool = False) -> Transition:
    return Transition(frozenset(s.value for s in sources), to.value, needs_reason)


TRANSITIONS: TransitionTable = {
    "start": _step(_S.WAITING, to=_S.RUNNING),
    "lose": _step(_S.RUNNING, to=_S.WAITING, needs_reason=True),
    "finish": _step(_S.RUNNING, to=_S.DONE),
    "fail": _step(_S.RUNNING, to=_S.FAILED, needs_reason=True),
    "stop": _step(_S.WAITING, _S.RUNNING, to=_S.STOPPED),
}

"""States of failure groups (active, muted, resolved, regressed) and their transitions.

Also the states that want a person's attention. Events among NOTES change no state.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import models

from wms.core.transitions import Transition, TransitionTable


class GroupState(models.TextChoices):
    """States of a group of failures: active, muted, resolved or regressed."""

    ACTIVE = "active", "active"
    MUTED = "muted", "muted"
    RESOLVED = "resolved", "resolved"
    REGRESSED = "regressed", "regressed"


def _step(*sources: GroupState, to: GroupState, needs_reason: bool = True) -> Transition:
    return Transition(frozenset(s.value for s in sources), to.value, needs_reason)


_S = GroupState
#: States in which a group wants to be looked at.
WANTED = frozenset({_S.ACTIVE.value, _S.REGRESSED.value})

TRANSITIONS: TransitionTable = {
    "mute": _step(_S.ACTIVE, _S.REGRESSED, to=_S.MUTED),
    "resolve": _step(_S.ACTIVE, _S.REGRESSED, _S.MUTED, to=_S.RESOLVED),
    "reopen": _step(_S.MUTED, _S.RESOLVED, _S.REGRESSED, to=_S.ACTIVE),
    # It has happened again after it was resolved.
    "regress": _step(_S.RESOLVED, to=_S.REGRESSED),
}

#: Events that change no state, with the states in which they are written.
NOTES: Mapping[str, frozenset[str]] = {"categorise": frozenset(GroupState.values)}

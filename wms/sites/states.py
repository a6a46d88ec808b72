"""States of sites (commissioning, open, draining, banned), and transitions between them."""

from __future__ import annotations

from django.db import models

from wms.core.transitions import Transition, TransitionTable


class SiteState(models.TextChoices):
    """States of a site: commissioning until it has shown that it works, then as people set it."""

    COMMISSIONING = "commissioning", "commissioning"
    OPEN = "open", "open"
    DRAINING = "draining", "draining"
    BANNED = "banned", "banned"


def _step(*sources: SiteState, to: SiteState) -> Transition:
    return Transition(frozenset(s.value for s in sources), to.value, needs_reason=True)


_S = SiteState
TRANSITIONS: TransitionTable = {
    "commission": _step(_S.COMMISSIONING, to=_S.OPEN),
    "ban": _step(_S.COMMISSIONING, _S.OPEN, _S.DRAINING, to=_S.BANNED),
    "drain": _step(_S.OPEN, _S.BANNED, to=_S.DRAINING),
    "unban": _step(_S.DRAINING, _S.BANNED, to=_S.OPEN),
}

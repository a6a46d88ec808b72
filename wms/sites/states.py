"""States of sites as people set them (open, draining, banned), and transitions between them."""

from __future__ import annotations

from django.db import models

from wms.core.transitions import Transition, TransitionTable


class SiteState(models.TextChoices):
    """States of a site: open, draining or banned."""

    OPEN = "open", "open"
    DRAINING = "draining", "draining"
    BANNED = "banned", "banned"


def _step(*sources: SiteState, to: SiteState) -> Transition:
    return Transition(frozenset(s.value for s in sources), to.value, needs_reason=True)


_S = SiteState
TRANSITIONS: TransitionTable = {
    "ban": _step(_S.OPEN, _S.DRAINING, to=_S.BANNED),
    "drain": _step(_S.OPEN, _S.BANNED, to=_S.DRAINING),
    "unban": _step(_S.DRAINING, _S.BANNED, to=_S.OPEN),
}

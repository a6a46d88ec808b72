"""What operators set for all DAGs: reading it, and changing it."""

from __future__ import annotations

from wms.dags.models import MatchmakingPolicy


def matchmaking_policy() -> MatchmakingPolicy:
    """The policy in force; its defaults, unsaved, as long as nobody has set one."""
    return MatchmakingPolicy.objects.filter(pk=1).first() or MatchmakingPolicy(pk=1)

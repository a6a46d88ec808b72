"""Idle detection: control loops run less often while nothing happens in the installation.

The sign of activity is one time in the cache: of the last event, of a person's action, and of the
last cycle that found something to do. Without the cache every loop keeps its period. Also how near
a due time must be to count as activity.
"""

from __future__ import annotations

import time

import structlog
from django.core.cache import cache
from redis.exceptions import RedisError

log = structlog.get_logger(__name__)
#: An installation is idle when nothing has happened for so long.
IDLE_AFTER_S = 30.0
#: What becomes due within this time counts as activity: it would be met too late by an idle loop.
SOON_S = 40.0
_MARK = "active_at"
_MARK_LIFETIME_S = 3600
_SHORTEST_S = 10.0
_LONGEST_S = 30.0
_FACTOR = 3.0


def idle_period_s(period_s: float) -> float:
    """Seconds between the turns of a loop in an idle installation: thrice as long, 10 to 30."""
    return max(period_s, min(max(_FACTOR * period_s, _SHORTEST_S), _LONGEST_S))


def note_activity() -> None:
    """Keep all loops at their periods for `IDLE_AFTER_S`, on every host."""
    try:
        cache.set(_MARK, time.time(), timeout=_MARK_LIFETIME_S)
    except (RedisError, OSError) as error:
        log.warning("activity_not_noted", error=str(error))


def idle_for_s() -> float:
    """Seconds since the last activity; 0 when nobody can tell, infinite when there was none."""
    try:
        active_at = cache.get(_MARK)
    except (RedisError, OSError):
        return 0.0
    return float("inf") if active_at is None else max(0.0, time.time() - active_at)

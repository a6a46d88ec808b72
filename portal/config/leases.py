"""Lease in the broker: of any number of processes the one that leads.

It ends when its holder says so, or a while after the holder was last heard. Two may hold it for a
moment, when the broker forgets it: what they do has to bear that.
"""

from __future__ import annotations

import secrets
import time

import structlog
from django.core.cache import cache
from redis.exceptions import RedisError

log = structlog.get_logger(__name__)
#: Who waits takes over so long after the holder fell silent.
LEASE_S = 10
#: The broker is asked so often by the holder, not at each look.
_RENEWED_AFTER_S = 3.0


class Lease:
    """The lease `name`, as one process sees it."""

    def __init__(self, name: str) -> None:
        self._name, self._token = f"lease:{name}", secrets.token_hex(8)
        self._is_held = False
        self._renewed_at_s = 0.0

    def is_held(self) -> bool:
        """Take or renew it where due; without a broker, which has nothing to give, False."""
        now_s = time.monotonic()
        if self._is_held and now_s < self._renewed_at_s + _RENEWED_AFTER_S:
            return True
        had, self._is_held = self._is_held, self._ask()
        self._renewed_at_s = now_s
        if had != self._is_held:
            log.info("lease_taken" if self._is_held else "lease_lost", lease=self._name)
        return self._is_held

    def release(self) -> None:
        """Release for the next one at once; not of one that another holds by now."""
        try:
            if self._is_held and cache.get(self._name) == self._token:
                cache.delete(self._name)
        except (RedisError, OSError) as error:
            log.warning("lease_not_released", lease=self._name, error=str(error))
        self._is_held = False

    def _ask(self) -> bool:
        try:
            if cache.add(self._name, self._token, timeout=LEASE_S):
                return True
            if cache.get(self._name) != self._token:
                return False
            # One that ended in between, and that another took, is theirs again within a renewal.
            cache.set(self._name, self._token, timeout=LEASE_S)
        except (RedisError, OSError) as error:
            log.warning("lease_not_asked_for", lease=self._name, error=str(error))
            return False
        return True

"""Renewal of a payload's bearer token: asked for in heartbeats, written where it is read."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ..control import Attempt
from .job_description import BearerToken

#: Part of its lifetime after which another token is asked for.
_RENEWED_AFTER = 0.5

log = logging.getLogger("pilot")


class TokenRenewal:
    """Token of one payload, from `begin` to `stop`; none where its job asked for none."""

    def __init__(self, attempt: Attempt, first: BearerToken | None) -> None:
        self._attempt = attempt
        self._first = first
        self._lock = threading.Lock()
        self._write: Callable[[str], None] | None = None
        self._renew_at = 0.0

    def begin(self, write: Callable[[str], None]) -> None:
        """Write the first token; `write` puts one in its place, and may take long.

        Raises OSError.
        """
        if self._first is not None:
            write(self._first.text)
            self._note(self._first)
            self._write = write

    def is_due(self) -> bool:
        """Whether the payload runs and needs another token soon."""
        return self._write is not None and time.monotonic() >= self._renew_at

    def renew(self, token: BearerToken) -> None:
        """Write another token, from a thread of its own: heartbeats must not wait for it."""
        if self._write is not None:
            self._note(token)
            threading.Thread(target=self._put, args=(token,), name="token", daemon=True).start()

    def stop(self) -> None:
        """Write no more: the payload is over, and its folder goes."""
        with self._lock:
            self._write = None

    def _note(self, token: BearerToken) -> None:
        self._renew_at = time.monotonic() + token.lifetime_s * _RENEWED_AFTER

    def _put(self, token: BearerToken) -> None:
        with self._lock:
            if self._write is None:
                return
            try:
                self._write(token.text)
            except OSError as error:
                log.warning("job %d attempt %d: no new token: %s", *self._attempt, error)

"""Hasher of passwords: Argon2id with the parameters of RFC 9106 for less memory; few at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from django.contrib.auth.hashers import Argon2PasswordHasher

from wms.core.errors import Busy

#: Passwords that one process hashes at once, and how long another one waits for its turn.
_AT_ONCE = 2
_PATIENCE_S = 10.0
_PLACES = BoundedSemaphore(_AT_ONCE)


class Argon2(Argon2PasswordHasher):
    """Argon2id with 64 MiB, three passes and four lanes.

    The memory would be had by each thread of a web server that checks a password, of whoever it may
    be: so only some of them do at once. Raises Busy after a wait.
    """

    time_cost = 3
    memory_cost = 64 * 1024
    parallelism = 4

    def encode(self, password: str, salt: str) -> str:
        """Hash of a password."""
        with _place():
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        """Whether it is the password."""
        with _place():
            return super().verify(password, encoded)


@contextmanager
def _place() -> Iterator[None]:
    if not _PLACES.acquire(timeout=_PATIENCE_S):
        raise Busy("Many people are logging in: try again in a moment.")
    try:
        yield
    finally:
        _PLACES.release()

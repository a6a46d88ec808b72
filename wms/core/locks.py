"""Mutual exclusion between processes by PostgreSQL advisory locks."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_NAMESPACE = 0x50494C4F  # "PILO": keeps our keys apart from those of other programs in the database


@contextmanager
def advisory_lock(name: str) -> Iterator[bool]:
    """Yield True when this session holds the lock `name`, False when another one does.

    Never waits. The lock ends with the block, or with the database session: a process that is
    killed leaves nothing locked.
    """
    key = zlib.crc32(name.encode()) - 0x80000000
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_NAMESPACE, key])
        is_held = bool(cursor.fetchone()[0])
    try:
        yield is_held
    finally:
        if is_held and connection.connection is not None and not connection.connection.closed:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_NAMESPACE, key])

"""Advisory locks of PostgreSQL by name, for mutual exclusion between processes.

A block takes one, or the first free one of several, without waiting; a transaction waits for all of
several, and keeps them to its end.

Where each transaction may have another session of the server, behind a pool, there are connections
`LOCKS`: a block holds its locks in a transaction there, which does nothing else.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from django.db import connection, connections, transaction

from wms.core.database.sql import (
    RELEASE_LOCK,
    TAKE_FREE_LOCK,
    TAKE_FREE_LOCK_OF_TRANSACTION,
    WAIT_FOR_LOCKS,
)

#: Alias of the connections whose transactions hold locks, where sessions cannot.
LOCKS = "locks"

_NAMESPACE = 0x50494C4F  # "PILO": keeps our keys apart from those of other programs in the database


@contextmanager
def advisory_lock(name: str) -> Iterator[bool]:
    """Yield True when this session holds the lock `name`, False when another one does.

    Never waits. The lock ends with the block, or with the database session: a process that is
    killed leaves nothing locked.
    """
    with one_of_advisory_locks([name]) as is_held:
        yield is_held


@contextmanager
def one_of_advisory_locks(names: Sequence[str]) -> Iterator[bool]:
    """The same for the first lock that is free; False when others hold all of them."""
    keys = [_key(name) for name in names]
    hold = _hold_in_transaction if LOCKS in connections.settings else _hold_in_session
    with hold(keys) as is_held:
        yield is_held


@contextmanager
def _hold_in_session(keys: list[int]) -> Iterator[bool]:
    with connection.cursor() as cursor:
        cursor.execute(TAKE_FREE_LOCK, [keys, _NAMESPACE])
        held = cursor.fetchone()
    try:
        yield held is not None
    finally:
        if held and connection.connection is not None and not connection.connection.closed:
            with connection.cursor() as cursor:
                cursor.execute(RELEASE_LOCK, [_NAMESPACE, *held])


@contextmanager
def _hold_in_transaction(keys: list[int]) -> Iterator[bool]:
    """A block within a block is a savepoint: going back to it ends the locks taken since."""
    with transaction.atomic(using=LOCKS):
        try:
            with connections[LOCKS].cursor() as cursor:
                cursor.execute(TAKE_FREE_LOCK_OF_TRANSACTION, [keys, _NAMESPACE])
                held = cursor.fetchone()
            yield held is not None
        finally:
            transaction.set_rollback(True, using=LOCKS)


def wait_for_locks(names: Collection[str]) -> None:
    """Take all these locks, waiting where need be, until the caller's transaction ends.

    In one order whoever asks, so that two callers never wait for each other in a circle.
    """
    keys = sorted({_key(name) for name in names})
    if keys:
        with connection.cursor() as cursor:
            cursor.execute(WAIT_FOR_LOCKS, [_NAMESPACE, keys])


def _key(name: str) -> int:
    return zlib.crc32(name.encode()) - 0x80000000

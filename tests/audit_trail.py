"""Changes of the audit trail by tests, past the triggers that refuse them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def unguarded() -> Iterator[None]:
    """No trigger fires inside, which needs the rights of a superuser."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        yield
        cursor.execute("SET LOCAL session_replication_role = origin")

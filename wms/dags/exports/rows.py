"""Helpers of exports: streaming of SQL rows through a cursor, and times in C's format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import connection

_CHUNK = 2000


def stream(sql: str, parameters: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Rows of one statement, fetched by the thousands through a server-side cursor."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(sql, parameters)
        while rows := cursor.fetchmany(_CHUNK):
            yield from rows


def c_time(time: datetime) -> str:
    """Time as C's `ctime` writes it, in UTC: `Fri Nov 20 13:38:43 2026`."""
    in_utc = time.astimezone(UTC)
    return f"{in_utc:%a %b} {in_utc.day:2d} {in_utc:%H:%M:%S %Y}"

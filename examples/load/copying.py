"""Writer of table rows by COPY, a hundred thousand in a second.

`new_ids` reserves ids of a table; `stamp`, `plain` and `NULL` are values as texts for COPY.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.db import connection, models

#: So many rows are sent at once.
_BATCH = 20_000
NULL = r"\N"


class Table:
    """Takes rows as texts, in the order of the columns; what has no column has its default.

    No text has a tab, a line end or a backslash. One table is sent at a time.
    """

    def __init__(self, model: type[models.Model], *columns: str) -> None:
        self._copy = f"COPY {model._meta.db_table} ({', '.join(columns)}) FROM STDIN"
        self._lines: list[str] = []

    def add(self, *values: str) -> None:
        """One more row."""
        self._lines.append("\t".join(values))
        if len(self._lines) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Send what was taken and not yet sent."""
        if not self._lines:
            return
        with connection.cursor() as cursor, cursor.copy(self._copy) as copy:
            copy.write("\n".join(self._lines) + "\n")
        self._lines.clear()


def new_ids(model: type[models.Model], count: int) -> int:
    """The first of so many ids that follow one another, which nobody else is given."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [model._meta.db_table])
        sequence = cursor.fetchone()[0]
        cursor.execute("SELECT nextval(%s)", [sequence])
        first: int = cursor.fetchone()[0]
        cursor.execute("SELECT setval(%s, %s)", [sequence, first + max(count, 1) - 1])
    return first


def moment(seconds: float) -> datetime:
    """A time of the epoch."""
    return datetime.fromtimestamp(seconds, UTC)


def stamp(seconds: float | None) -> str:
    """A time of the epoch as a text for COPY."""
    return NULL if seconds is None else moment(seconds).isoformat()


def plain(value: Any) -> str:
    """A value of a JSON column as a text for COPY."""
    return json.dumps(value).replace("\\", "\\\\")

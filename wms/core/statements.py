"""Statements that are sent so often that the server should plan them only once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from django.db import connection
from psycopg.types.numeric import Int8


def one_line(sql: str) -> str:
    """The statement without its line ends and indents: only of short ones the driver keeps what it
    has understood. It has no spaces in quotes.
    """
    return " ".join(sql.split())


def prepared_rows(sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of a statement that stays prepared in the database session.

    Django's own cursors put the values into the text, so that each execution is planned anew. Whole
    numbers are sent as `bigint` whatever their size, because each combination of types would be a
    statement of its own. Errors are those of Django.
    """
    values = {
        name: Int8(value) if type(value) is int else value for name, value in parameters.items()
    }
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(sql, values, prepare=True)
        return cursor.fetchall()

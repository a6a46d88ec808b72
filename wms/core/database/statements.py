"""Execution of SQL written by hand: prepared statements, and a pipeline that waits for no results.

Also the text of a statement on one line, and parameters: arrays of whole numbers as text, and
values of a model's columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection, models
from psycopg.types.numeric import Int8


def one_line(sql: str) -> str:
    """The statement without its line ends and indents: only of short ones the driver keeps what it
    has understood. It has no spaces in quotes.
    """
    return " ".join(sql.split())


def whole_numbers(values: Iterable[int]) -> str:
    """The text of an SQL array of whole numbers, which the driver takes ten times as long to write.

    To be used with a cast, as in `%s::bigint[]`.
    """
    return f"{{{','.join(map(str, values))}}}"


def stored_values(model: type[models.Model], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of columns of a model as parameters of a statement, under the same names."""
    return {
        name: model._meta.get_field(name).get_db_prep_save(value, connection)  # type: ignore[union-attr]
        for name, value in values.items()
    }


def prepared_rows(sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of a statement that stays prepared in the database session.

    Django's own cursors put the values into the text, so that each execution is planned anew. Whole
    numbers are sent as `bigint` whatever their size, because each combination of types would be a
    statement of its own. Errors are those of Django.
    """
    values = {
        name: Int8(value) if type(value) is int else value for name, value in parameters.items()
    }
    # What Django's own cursors look at first: the connection may have died with the server, and a
    # transaction that is to be rolled back goes on with nothing.
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    connection.validate_no_broken_transaction()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(sql, values, prepare=True)
        return cursor.fetchall()


@contextmanager
def sent_ahead() -> Iterator[None]:
    """Pipeline: inside, statements whose results nobody reads are not waited for.

    Reading any result waits for all statements before it. How many rows a statement changed is not
    told, and there are no cursors on the server: no `iterator()`. An error, one of Django's, is
    raised by a later statement or at the end. It must be inside a transaction.
    """
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield

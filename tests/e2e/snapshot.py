"""Snapshot of all rows of a database with the example production, copied for each browser test.

Times are moved, as if the rows were made just now. To build a production takes as long as most
browser tests; to copy its rows takes a moment.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from tests.e2e import production
from tests.emptying import tables_with_rows

_SCHEMA = "snapshot"
#: Their times are the borders of bins.
_WITH_BINS = {"history_bin", "failures_failurebin"}
_READ_COLUMNS = """
SELECT table_name, column_name, data_type FROM information_schema.columns
WHERE table_schema = %s AND is_generated = 'NEVER' ORDER BY table_name, ordinal_position
"""


class ProductionSnapshot:
    """A production that is built once for a process; each test begins with a copy of it."""

    def __init__(self) -> None:
        self._built: production.Production | None = None
        self._copies: list[str] = []

    def production(self) -> production.Production:
        """Fill the empty database."""
        if self._built is None:
            self._built = production.build()
            self._keep()
            return self._built
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            for table in tables_with_rows():
                cursor.execute(f'DELETE FROM "{table}"')
            for statement in self._copies:
                cursor.execute(statement)
        return _read_again(self._built)

    def _keep(self) -> None:
        at = timezone.now().isoformat()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"CREATE SCHEMA {_SCHEMA}")
            tables = tables_with_rows()
            for table in tables:
                cursor.execute(f'CREATE TABLE {_SCHEMA}."{table}" AS TABLE public."{table}"')
            cursor.execute(_READ_COLUMNS, ["public"])
            columns = defaultdict(list)
            for table, column, kind in cursor.fetchall():
                columns[table].append((f'"{column}"', kind))
        self._copies = [_copy(table, columns[table], at) for table in tables]


def _copy(table: str, columns: list[tuple[str, str]], at: str) -> str:
    """The statement that copies the rows of a table, whose times pass since they were kept."""
    values = [
        f"{column} + (now() - '{at}'::timestamptz)"
        if kind == "timestamp with time zone" and table not in _WITH_BINS
        else column
        for column, kind in columns
    ]
    names = ", ".join(column for column, _ in columns)
    return (
        f'INSERT INTO public."{table}" ({names}) '
        f'SELECT {", ".join(values)} FROM {_SCHEMA}."{table}"'
    )


def _read_again(built: production.Production) -> production.Production:
    found: dict[str, Any] = {}
    for field in fields(built):
        value = getattr(built, field.name)
        if isinstance(value, SimpleNamespace):
            found[field.name] = SimpleNamespace(
                **{name: _row(each) for name, each in vars(value).items()}
            )
        else:
            found[field.name] = _row(value)
    return production.Production(**found)


def _row(kept: Model) -> Model:
    return type(kept)._base_manager.get(pk=kept.pk)

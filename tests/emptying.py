"""Emptying of all tables after a test that really commits, and the names of tables with rows."""

from __future__ import annotations

from functools import cache

from django.db import connection, transaction
from django.test import TransactionTestCase

#: Django makes them when it migrates; they are the same in every test.
_KEPT = {"django_content_type", "auth_permission"}


def empty_tables(_: TransactionTestCase) -> None:
    """Delete the rows of all tables but those that Django fills.

    Django's way, to truncate every table and to make its own rows anew, costs more than most tests:
    a table of PostgreSQL gets new files by it, and so does each index, however few rows there were.
    No trigger looks at references meanwhile, which needs the rights of a superuser.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table in tables_with_rows():
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")


def tables_with_rows() -> list[str]:
    """The names of all tables that are not empty, but those that Django fills."""
    with connection.cursor() as cursor:
        cursor.execute(_which_have_rows())
        return [table for (table,) in cursor.fetchall()]


@cache
def _which_have_rows() -> str:
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return " UNION ALL ".join(
        f"SELECT '{table}' WHERE EXISTS (SELECT FROM {connection.ops.quote_name(table)})"
        for table in sorted({*tables} - _KEPT)
    )


_flush = TransactionTestCase._fixture_teardown


def flush_tables(case: TransactionTestCase) -> None:
    """Django's way, for a server of somebody else; the audit trail would refuse it."""
    _switch_triggers("DISABLE")
    try:
        _flush(case)
    finally:
        _switch_triggers("ENABLE")


def _switch_triggers(how: str) -> None:
    with connection.cursor() as cursor:
        for table in ("core_auditentry", "core_auditseal"):
            cursor.execute(f"ALTER TABLE {table} {how} TRIGGER USER")

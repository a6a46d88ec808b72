"""Emptying of all tables after a test that really commits, and the names of tables with rows.

Neither the test's connection nor the one that empties is made anew: PostgreSQL would read again
what it knows of each table, which costs more than many a test.
"""

from __future__ import annotations

from functools import cache

import psycopg
from django.db import connection
from django.test import TransactionTestCase

#: Django makes them when it migrates; they are the same in every test.
_KEPT = {"django_content_type", "auth_permission"}


def empty_tables(_: TransactionTestCase) -> None:
    """Delete the rows of all tables but those that Django fills.

    Django's way, to truncate every table and to make its own rows anew, costs more than most tests:
    a table of PostgreSQL gets new files by it, and so does each index, however few rows there were.
    """
    if connection.connection and connection.connection.info.transaction_status:
        # What the test left open would be waited for.
        connection.close()
    session = _session()
    with session.transaction():
        for table in _tables_with_rows(session):
            session.execute(f"DELETE FROM {connection.ops.quote_name(table)}".encode())


def needs_reconnection(_: TransactionTestCase) -> bool:
    """Whether the test's connection is of no more use; no lock of it outlives the test."""
    if connection.connection and not connection.is_usable():
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock_all(); UNLISTEN *")
    return False


def tables_with_rows() -> list[str]:
    """The names of all tables that are not empty, but those that Django fills."""
    connection.ensure_connection()
    return _tables_with_rows(connection.connection)


def _tables_with_rows(session: psycopg.Connection) -> list[str]:
    # To plan so many branches takes much longer than to carry them out.
    found = session.execute(_which_have_rows().encode(), prepare=True)
    return [table for (table,) in found.fetchall()]


@cache
def _session() -> psycopg.Connection:
    """Session that empties. No trigger looks at references in it: it needs a superuser's rights."""
    found = connection.get_connection_params()
    return psycopg.connect(
        **{name: found[name] for name in ("host", "port", "dbname", "user", "password")},
        autocommit=True,
        options="-c session_replication_role=replica",
    )


def end_session() -> None:
    """Leave the database, which is about to be dropped."""
    if _session.cache_info().currsize:
        _session().close()
        _session.cache_clear()


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

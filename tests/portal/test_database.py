"""A connection that died between two requests is replaced; one that lives costs no question."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection

from tests.statements import carried_out_by
from wms.core.database.statements import prepared_rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def _kept() -> Iterator[None]:
    """A connection that is kept from the request before, and is to be looked at by the next."""
    connection.ensure_connection()
    connection.health_check_enabled, connection.health_check_done = True, False
    yield
    connection.close()


def cursors_rows() -> list[tuple[int]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return list(cursor.fetchall())


def end_session() -> None:
    pid = connection.connection.info.backend_pid
    with psycopg.connect(connection.connection.info.dsn, autocommit=True,
                         password=connection.settings_dict["PASSWORD"]) as other:  # fmt: skip
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


@pytest.mark.usefixtures("_kept")
@pytest.mark.parametrize("read", [cursors_rows, lambda: prepared_rows("SELECT 1", {})])
def test_a_connection_whose_session_was_ended_is_replaced_before_the_first_query(read) -> None:
    end_session()

    assert read() == [(1,)]


@pytest.mark.usefixtures("_kept")
def test_a_connection_that_lives_is_not_asked() -> None:
    assert carried_out_by(cursors_rows) == ["SELECT"]
    assert connection.health_check_done


def test_the_server_gives_up_a_peer_that_is_gone_without_a_word() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('tcp_keepalives_idle')::int +"
            " current_setting('tcp_keepalives_interval')::int *"
            " current_setting('tcp_keepalives_count')::int"
        )
        [seconds] = cursor.fetchone()

    assert seconds == 60

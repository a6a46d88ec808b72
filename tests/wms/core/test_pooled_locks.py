"""Locks of transactions, for sessions that a pool hands out to others after each transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from django.db import connection, connections

from portal.config.databases import databases
from wms.core.database.locks import LOCKS, advisory_lock, one_of_advisory_locks

pytestmark = pytest.mark.django_db


@pytest.fixture
def pooled() -> Iterator[None]:
    """Database settings as behind a pool, of the same database."""
    connections.settings[LOCKS] = {**connection.settings_dict}
    connections[LOCKS] = connection.copy()
    yield
    connections[LOCKS].close()
    del connections[LOCKS], connections.settings[LOCKS]


def _is_free(name: str) -> bool:
    """Asked by the session of the other connection."""
    locks = connections.settings.pop(LOCKS)
    try:
        with advisory_lock(name) as is_held:
            return is_held
    finally:
        connections.settings[LOCKS] = locks


@pytest.mark.usefixtures("pooled")
def test_a_lock_of_a_transaction_keeps_sessions_out_until_its_block_ends() -> None:
    with advisory_lock("x") as is_held:
        assert is_held
        assert not _is_free("x")

    assert _is_free("x")


@pytest.mark.usefixtures("pooled")
def test_the_lock_of_an_inner_block_ends_with_that_block() -> None:
    with advisory_lock("outer"):
        with one_of_advisory_locks(["inner", "other"]) as is_held:
            assert is_held
            assert not _is_free("inner")

        assert _is_free("inner")
        assert not _is_free("outer")


@pytest.mark.usefixtures("pooled")
def test_the_lock_ends_when_the_block_fails() -> None:
    with suppress(ZeroDivisionError), advisory_lock("x"):
        raise ZeroDivisionError

    assert _is_free("x")


@pytest.mark.usefixtures("pooled")
def test_a_lock_that_a_session_holds_is_not_given() -> None:
    locks = connections.settings.pop(LOCKS)
    with advisory_lock("x"):
        connections.settings[LOCKS] = locks
        with advisory_lock("x") as is_held:
            assert not is_held
        connections.settings.pop(LOCKS)
    connections.settings[LOCKS] = locks


def test_behind_a_pool_nothing_is_kept_in_a_session() -> None:
    pooled = databases("postgresql://a:b%40@pool:6432/c", is_pooled=True)

    assert set(pooled) == {"default", LOCKS}
    assert pooled["default"]["PASSWORD"] == "b@"
    assert pooled["default"]["DISABLE_SERVER_SIDE_CURSORS"] is True
    assert pooled["default"]["OPTIONS"]["prepare_threshold"] is None
    assert "options" not in pooled["default"]["OPTIONS"]
    assert set(databases("postgresql://a:b@server/c", is_pooled=False)) == {"default"}

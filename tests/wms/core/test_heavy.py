"""Places for requests that take long: few for each user, few in all, and none is ever lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Any

import pytest
from django.db import connection, connections

from tests import factories
from wms.core.errors import Busy
from wms.core.heavy import Work, heavy_place
from wms.core.models import Role, User

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def few_places(settings: Any) -> None:
    places = {"MAX_HEAVY_REQUESTS": 3, "MAX_HEAVY_REQUESTS_PER_USER": 2}
    settings.PILOTAGE = {**settings.PILOTAGE, **places}


@pytest.fixture
def users() -> list[User]:
    return [factories.person(name, Role.USER) for name in ("alice", "bob", "charlie")]


@contextmanager
def _place_of_another_session(
    user: User, work: Work = Work.ANSWER, *, leave: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """A place that a thread with a connection of its own holds during the block."""
    is_held, is_over = Event(), Event()

    def hold() -> None:
        try:
            with heavy_place(user, work):
                is_held.set()
                assert is_over.wait(30)
                leave()
        finally:
            is_held.set()
            connections["default"].close()

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(hold)
        assert is_held.wait(30)
        try:
            yield
        finally:
            is_over.set()
            done.result()


def test_a_user_has_so_many_places_and_others_have_theirs(users: list[User]) -> None:
    alice, bob, _ = users

    with _place_of_another_session(alice), _place_of_another_session(alice):
        with pytest.raises(Busy, match="requests of yours") as refused, heavy_place(alice):
            pytest.fail("the block must not run")
        with heavy_place(bob):
            pass

    assert (refused.value.status, refused.value.code) == (429, "busy")
    assert refused.value.retry_after_s
    with heavy_place(alice):
        pass


def test_all_together_have_so_many_places(users: list[User]) -> None:
    alice, bob, charlie = users

    with ExitStack() as held:
        for user in (alice, alice, bob):
            held.enter_context(_place_of_another_session(user))
        with pytest.raises(Busy, match="as much as it can"), heavy_place(charlie):
            pytest.fail("the block must not run")

    # What was refused has kept no place of its own.
    with _place_of_another_session(charlie), heavy_place(charlie):
        pass


def test_downloads_do_not_keep_answers_waiting(users: list[User]) -> None:
    alice = users[0]

    with (
        _place_of_another_session(alice, Work.DOWNLOAD),
        _place_of_another_session(alice, Work.DOWNLOAD),
    ):
        with pytest.raises(Busy), heavy_place(alice, Work.DOWNLOAD):
            pytest.fail("the block must not run")
        with heavy_place(alice):
            pass


def test_a_place_is_free_again_after_an_error_and_when_its_session_dies(users: list[User]) -> None:
    alice = users[0]

    with pytest.raises(ZeroDivisionError), heavy_place(alice):
        _ = 1 / 0
    with _place_of_another_session(alice, leave=lambda: connections["default"].close()):
        pass

    # The server notices the end of a session a moment later.
    assert any(_locks_held() == 0 for _ in range(1000))


def _locks_held() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return int(cursor.fetchone()[0])

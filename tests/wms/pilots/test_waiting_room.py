"""The room where pilots wait for jobs: who is called, and who looks next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from wms.pilots.protocol.waiting_room import Place, WaitingRoom


@pytest.fixture
def room() -> WaitingRoom:
    """A room that hears: news comes by hand."""
    made = WaitingRoom()
    made._listener.start = lambda: None  # type: ignore[method-assign]
    made._listener.hears = True
    return made


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def _places(room: WaitingRoom, stack: ExitStack, number: int) -> list[Place]:
    found = [stack.enter_context(room.place(number)) for _ in range(number)]
    return [place for place in found if place is not None]


def _called(places: list[Place]) -> list[bool]:
    return [place.called.is_set() for place in places]


def test_as_many_are_called_as_jobs_have_come_the_longest_waiting_first(
    room: WaitingRoom, stack: ExitStack
) -> None:
    places = _places(room, stack, 4)

    room.call(2)

    assert _called(places) == [True, True, False, False]


def test_who_finds_nothing_lets_those_look_who_have_not(
    room: WaitingRoom, stack: ExitStack
) -> None:
    places = _places(room, stack, 3)
    room.call(1)
    assert room.wait(places[0], 0)

    room.pass_on()
    room.pass_on()
    assert _called(places) == [False, True, True]
    room.pass_on()

    assert _called(places) == [False, True, True]


def test_who_has_looked_is_called_again_by_other_news(room: WaitingRoom, stack: ExitStack) -> None:
    [place] = _places(room, stack, 1)
    room.call(1)
    assert room.wait(place, 0)
    assert not room.wait(place, 0)

    room.call(1)

    assert room.wait(place, 0)


def test_who_leaves_though_called_lets_the_next_one_look(
    room: WaitingRoom, stack: ExitStack
) -> None:
    with room.place(2):
        place = stack.enter_context(room.place(2))
        assert place is not None
        room.call(1)
        assert not place.called.is_set()

    assert place.called.is_set()


def test_a_full_room_takes_no_more(room: WaitingRoom, stack: ExitStack) -> None:
    _places(room, stack, 2)

    with room.place(2) as place:
        assert place is None


def test_nobody_waits_where_no_news_is_heard(room: WaitingRoom, stack: ExitStack) -> None:
    places = _places(room, stack, 2)

    room._listener.hears = False
    room.send_all_away()

    assert _called(places) == [True, True]
    assert not any(room.wait(place, 0) for place in places)
    with room.place(3) as place:
        assert place is None

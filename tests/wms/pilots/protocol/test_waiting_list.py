"""Waiting list of held claims: which slot is woken, and which is next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from wms.pilots.protocol.waiting_list import WaitingList, WaitingSlot


@pytest.fixture
def waiting_list() -> WaitingList:
    """A room that hears: news comes by hand."""
    made = WaitingList()
    made._listener.start = lambda: None  # type: ignore[method-assign]
    made._listener.hears = True
    return made


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def _slots(waiting_list: WaitingList, stack: ExitStack, number: int) -> list[WaitingSlot]:
    found = [stack.enter_context(waiting_list.slot(number)) for _ in range(number)]
    return [slot for slot in found if slot is not None]


def _called(slots: list[WaitingSlot]) -> list[bool]:
    return [slot.called.is_set() for slot in slots]


def test_as_many_are_called_as_jobs_have_come_the_longest_waiting_first(
    waiting_list: WaitingList, stack: ExitStack
) -> None:
    slots = _slots(waiting_list, stack, 4)

    waiting_list.wake(2)

    assert _called(slots) == [True, True, False, False]


def test_who_finds_nothing_lets_those_look_who_have_not(
    waiting_list: WaitingList, stack: ExitStack
) -> None:
    slots = _slots(waiting_list, stack, 3)
    waiting_list.wake(1)
    assert waiting_list.wait(slots[0], 0)

    waiting_list.wake_next()
    waiting_list.wake_next()
    assert _called(slots) == [False, True, True]
    waiting_list.wake_next()

    assert _called(slots) == [False, True, True]


def test_who_has_looked_is_called_again_by_other_news(
    waiting_list: WaitingList, stack: ExitStack
) -> None:
    [slot] = _slots(waiting_list, stack, 1)
    waiting_list.wake(1)
    assert waiting_list.wait(slot, 0)
    assert not waiting_list.wait(slot, 0)

    waiting_list.wake(1)

    assert waiting_list.wait(slot, 0)


def test_who_leaves_though_called_lets_the_next_one_look(
    waiting_list: WaitingList, stack: ExitStack
) -> None:
    with waiting_list.slot(2):
        slot = stack.enter_context(waiting_list.slot(2))
        assert slot is not None
        waiting_list.wake(1)
        assert not slot.called.is_set()

    assert slot.called.is_set()


def test_a_full_room_takes_no_more(waiting_list: WaitingList, stack: ExitStack) -> None:
    _slots(waiting_list, stack, 2)

    with waiting_list.slot(2) as slot:
        assert slot is None


def test_nobody_waits_where_no_news_is_heard(waiting_list: WaitingList, stack: ExitStack) -> None:
    slots = _slots(waiting_list, stack, 2)

    waiting_list._listener.hears = False
    waiting_list.release_all()

    assert _called(slots) == [True, True]
    assert not any(waiting_list.wait(slot, 0) for slot in slots)
    with waiting_list.slot(3) as slot:
        assert slot is None

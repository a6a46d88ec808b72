from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.pressure import MAX_BATCH, QueueSnapshot, Room, decide_pressure, pilots_for, place

BUSY = QueueSnapshot(
    is_enabled=True,
    waiting_jobs=10,
    wanted_pilots=10,
    pending_pilots=0,
    alive_pilots=0,
    max_pilots=8,
    max_queued_pilots=5,
    free_slots=6,
)


@pytest.mark.parametrize(
    ("changes", "submit", "reason"),
    [
        ({}, 5, "at most 5 queued pilots"),
        ({"max_queued_pilots": 20}, 6, "free slots"),
        ({"max_queued_pilots": 20, "free_slots": 20}, 8, "at most 8 pilots"),
        ({"wanted_pilots": 1}, 1, "no pilot is free for"),
        ({"wanted_pilots": 0}, 0, "no pilot is free for"),
        (
            {
                "wanted_pilots": 999,
                "max_pilots": 999,
                "max_queued_pilots": 999,
                "free_slots": 999,
            },
            200,
            "at most 200 pilots at once",
        ),
        ({"waiting_jobs": 0}, 0, "no waiting job fits"),
        ({"is_enabled": False}, 0, "switched off"),
    ],
)
def test_the_tightest_limit_decides_and_is_named(
    changes: dict[str, int], submit: int, reason: str
) -> None:
    decision = decide_pressure(replace(BUSY, **changes))

    assert decision.submit == submit
    assert reason in decision.reason


@given(*[st.integers(0, 20)] * 7)
def test_no_limit_is_ever_exceeded(
    waiting: int, wanted: int, pending: int, busy: int, most: int, most_queued: int, free: int
) -> None:
    alive = pending + busy
    decision = decide_pressure(
        QueueSnapshot(True, waiting, wanted, pending, alive, most, most_queued, free)
    )

    assert decision.submit >= 0
    if decision.submit:
        assert waiting
        assert alive + decision.submit <= most
        assert pending + decision.submit <= most_queued
        assert decision.submit <= min(free, wanted)


@pytest.mark.parametrize(
    ("room", "job", "times"),
    [
        (Room(8), Room(1), 8),
        (Room(8), Room(3), 2),
        (Room(8, 16_000), Room(1, 3000), 5),
        (Room(8, 16_000, 2), Room(1, 0, 1), 2),
        (Room(8, 16_000), Room(1, 0, 1), 0),
        (Room(2), Room(4), 0),
        (Room(8, time_s=500), Room(1, time_s=500), 8),
        (Room(8, time_s=499), Room(1, time_s=500), 0),
    ],
)
def test_a_room_holds_jobs_as_long_as_all_of_it_lasts(room: Room, job: Room, times: int) -> None:
    assert room.holds(job) == times


def test_jobs_are_placed_in_what_is_free_and_leave_the_rest() -> None:
    free = Counter({Room(8, 8000, time_s=9): 2, Room(1, 8000): 1})

    placed = place(Room(3, 100), 5, free)

    assert placed == 4
    assert free == {Room(2, 7800, time_s=9): 2, Room(1, 8000): 1}


def test_the_last_pilot_needed_may_be_filled_in_part() -> None:
    free = Counter({Room(4): 3})

    assert place(Room(1), 5, free) == 5
    assert free == {Room(3): 1, Room(4): 1}


ROOMS = st.builds(Room, st.integers(1, 9), st.integers(0, 9), st.integers(0, 2), st.integers(0, 2))


@given(st.dictionaries(ROOMS, st.integers(1, 5), max_size=4), ROOMS, st.integers(0, 60))
def test_nothing_is_placed_that_does_not_fit_and_all_that_does(
    rooms: dict[Room, int], job: Room, jobs: int
) -> None:
    free = Counter(rooms)

    placed = place(job, jobs, free)

    assert placed == min(jobs, sum(room.holds(job) * pilots for room, pilots in rooms.items()))
    before = sum(room.cores * pilots for room, pilots in rooms.items())
    assert sum(room.cores * n for room, n in free.items()) == before - placed * job.cores
    assert all(n > 0 and min(room.memory_mb, room.gpus) >= 0 for room, n in free.items())


@pytest.mark.parametrize(
    ("jobs", "pilots"),
    [
        ({}, 0),
        ({Room(1): 8}, 1),
        ({Room(1): 9}, 2),
        ({Room(1): 1, Room(8): 1}, 2),
        ({Room(3): 4}, 2),
        ({Room(1, 4000): 4}, 2),
        ({Room(9): 4}, 0),
        ({Room(1, 0, 1): 3}, 3),
        ({Room(1, 0, 1): 1, Room(1, 3000): 2}, 1),
        ({Room(8): 1, Room(3): 2, Room(2): 1}, 2),
        ({Room(5): 2, Room(4): 2}, 3),
        ({Room(1): 8 * 10**6}, MAX_BATCH + 1),
    ],
)
def test_pilots_are_wanted_for_what_they_can_hold(jobs: dict[Room, int], pilots: int) -> None:
    assert pilots_for(jobs, Room(8, 8000, 1)) == pilots


@given(st.dictionaries(ROOMS, st.integers(1, 9), max_size=5))
def test_the_pilots_that_are_sent_hold_all_that_they_are_sent_for(jobs: dict[Room, int]) -> None:
    pilot = Room(9, 9, 2, 2)

    pilots = pilots_for(jobs, pilot)

    used = {
        name: sum(getattr(job, name) * count for job, count in jobs.items())
        for name in ("cores", "memory_mb", "gpus")
    }
    # No fewer than any of the three alone would need, and no more than one for each job.
    assert all(used[name] <= pilots * getattr(pilot, name) for name in used)
    assert pilots <= sum(jobs.values())

"""What is free in pilots, and how many pilots jobs fill."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.rooms import Room, pilots_for, place


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
        ({Room(1): 8 * 10**6}, 10**6),
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

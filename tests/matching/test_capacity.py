"""What is free in pilots, and how many pilots jobs fill."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.pressure.capacity import ResourceVector, pack_jobs, pilots_for


@pytest.mark.parametrize(
    ("capacity", "job", "times"),
    [
        (ResourceVector(8), ResourceVector(1), 8),
        (ResourceVector(8), ResourceVector(3), 2),
        (ResourceVector(8, 16_000), ResourceVector(1, 3000), 5),
        (ResourceVector(8, 16_000, 2), ResourceVector(1, 0, 1), 2),
        (ResourceVector(8, 16_000), ResourceVector(1, 0, 1), 0),
        (ResourceVector(2), ResourceVector(4), 0),
        (ResourceVector(8, time_s=500), ResourceVector(1, time_s=500), 8),
        (ResourceVector(8, time_s=499), ResourceVector(1, time_s=500), 0),
    ],
)
def test_a_pilot_fits_jobs_as_long_as_all_of_it_lasts(
    capacity: ResourceVector, job: ResourceVector, times: int
) -> None:
    assert capacity.fit_count(job) == times


def test_jobs_are_placed_in_what_is_free_and_leave_the_rest() -> None:
    free = Counter({ResourceVector(8, 8000, time_s=9): 2, ResourceVector(1, 8000): 1})

    placed = pack_jobs(ResourceVector(3, 100), 5, free)

    assert placed == 4
    assert free == {ResourceVector(2, 7800, time_s=9): 2, ResourceVector(1, 8000): 1}


def test_the_last_pilot_needed_may_be_filled_in_part() -> None:
    free = Counter({ResourceVector(4): 3})

    assert pack_jobs(ResourceVector(1), 5, free) == 5
    assert free == {ResourceVector(3): 1, ResourceVector(4): 1}


CAPACITIES = st.builds(
    ResourceVector, st.integers(1, 9), st.integers(0, 9), st.integers(0, 2), st.integers(0, 2)
)


@given(st.dictionaries(CAPACITIES, st.integers(1, 5), max_size=4), CAPACITIES, st.integers(0, 60))
def test_nothing_is_placed_that_does_not_fit_and_all_that_does(
    capacities: dict[ResourceVector, int], job: ResourceVector, jobs: int
) -> None:
    free = Counter(capacities)

    placed = pack_jobs(job, jobs, free)

    assert placed == min(
        jobs, sum(capacity.fit_count(job) * pilots for capacity, pilots in capacities.items())
    )
    before = sum(capacity.cores * pilots for capacity, pilots in capacities.items())
    assert sum(capacity.cores * n for capacity, n in free.items()) == before - placed * job.cores
    assert all(
        n > 0 and min(capacity.memory_mb, capacity.gpus) >= 0 for capacity, n in free.items()
    )


@pytest.mark.parametrize(
    ("jobs", "pilots"),
    [
        ({}, 0),
        ({ResourceVector(1): 8}, 1),
        ({ResourceVector(1): 9}, 2),
        ({ResourceVector(1): 1, ResourceVector(8): 1}, 2),
        ({ResourceVector(3): 4}, 2),
        ({ResourceVector(1, 4000): 4}, 2),
        ({ResourceVector(9): 4}, 0),
        ({ResourceVector(1, 0, 1): 3}, 3),
        ({ResourceVector(1, 0, 1): 1, ResourceVector(1, 3000): 2}, 1),
        ({ResourceVector(8): 1, ResourceVector(3): 2, ResourceVector(2): 1}, 2),
        ({ResourceVector(5): 2, ResourceVector(4): 2}, 3),
        ({ResourceVector(1): 8 * 10**6}, 10**6),
    ],
)
def test_pilots_are_wanted_for_what_they_can_hold(
    jobs: dict[ResourceVector, int], pilots: int
) -> None:
    assert pilots_for(jobs, ResourceVector(8, 8000, 1)) == pilots


@given(st.dictionaries(CAPACITIES, st.integers(1, 9), max_size=5))
def test_the_pilots_that_are_sent_hold_all_that_they_are_sent_for(
    jobs: dict[ResourceVector, int],
) -> None:
    pilot = ResourceVector(9, 9, 2, 2)

    pilots = pilots_for(jobs, pilot)

    used = {
        name: sum(getattr(job, name) * count for job, count in jobs.items())
        for name in ("cores", "memory_mb", "gpus")
    }
    # No fewer than any of the three alone would need, and no more than one for each job.
    assert all(used[name] <= pilots * getattr(pilot, name) for name in used)
    assert pilots <= sum(jobs.values())

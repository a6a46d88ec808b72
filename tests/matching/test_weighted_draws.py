from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.task_queues.weighted_draws import (
    Law,
    chances,
    job_weight,
    smallest_of,
    variate,
    winner,
)
from tests import chi_square

DRAWS = 20_000
WEIGHTS = [1.0, 2.0, 5.0, 9.0, 0.5]
LAWS = list(Law)


def drawn(weights: list[float], law: Law, *, seed: int) -> list[int]:
    rng = random.Random(seed)
    won = Counter(winner(weights, [1 - rng.random() for _ in weights], law) for _ in range(DRAWS))
    return [won[index] for index in range(len(weights))]


@pytest.mark.parametrize("law", LAWS)
def test_everybody_wins_as_often_as_the_law_says(law: Law) -> None:
    chi_square.assert_drawn(drawn(WEIGHTS, law, seed=1), chances(WEIGHTS, law))


def test_the_two_laws_are_told_apart() -> None:
    chi_square.assert_not_drawn(
        drawn(WEIGHTS, Law.UNIFORM, seed=1), chances(WEIGHTS, Law.EXPONENTIAL)
    )


def test_with_exponential_variates_n_times_the_weight_wins_n_times_as_often() -> None:
    assert chances([1.0, 4.0], Law.EXPONENTIAL) == [0.2, 0.8]


@pytest.mark.parametrize(("weight", "chance"), [(2.0, 0.75), (5.0, 0.9), (9.0, 1 - 1 / 18)])
def test_with_u_over_w_the_heavier_of_two_wins_beyond_its_share(
    weight: float, chance: float
) -> None:
    assert chances([1.0, weight], Law.UNIFORM)[1] == pytest.approx(chance, abs=1e-6)


@pytest.mark.slow
@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8), st.sampled_from(LAWS))
def test_chances_add_up_to_one_and_follow_the_weights(weights: list[float], law: Law) -> None:
    found = chances(weights, law)

    assert math.isclose(sum(found), 1.0, rel_tol=1e-9)
    for weight, chance in zip(weights, found, strict=True):
        for other, its_chance in zip(weights, found, strict=True):
            assert chance >= its_chance or weight < other or math.isclose(chance, its_chance)


@pytest.mark.parametrize("law", LAWS)
def test_jobs_of_one_weight_can_be_drawn_together(law: Law) -> None:
    # Three jobs of weight 1 against two of weight 4, one by one and by their counts.
    rng = random.Random(3)
    together = Counter(
        smallest_of(3, 1.0, 1 - rng.random(), law) < smallest_of(2, 4.0, 1 - rng.random(), law)
        for _ in range(DRAWS)
    )
    first = sum(chances([1.0, 1.0, 1.0, 4.0, 4.0], law)[:3])

    chi_square.assert_drawn([together[True], together[False]], [first, 1 - first])


@pytest.mark.parametrize("law", LAWS)
def test_of_one_job_the_smallest_is_its_own(law: Law) -> None:
    assert smallest_of(1, 3.0, 0.4, law) == pytest.approx(
        variate(3.0, 0.4 if law is Law.EXPONENTIAL else 0.6, law)
    )


def test_a_job_counts_with_its_priority_except_at_the_ends() -> None:
    assert [job_weight(priority) for priority in (0, 1, 5, 9, 10)] == [1e-5, 1, 5, 9, 1e5]


@pytest.mark.parametrize("priority", [-1, 11])
def test_a_priority_outside_of_zero_to_ten_is_refused(priority: int) -> None:
    with pytest.raises(ValueError, match="from 0 to 10"):
        job_weight(priority)

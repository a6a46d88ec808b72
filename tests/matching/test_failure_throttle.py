from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.negotiation.failure_throttle import Outcomes, next_allowance

THRESHOLD = 18
THRESHOLDS = st.integers(1, 1000)
COUNTS = st.integers(0, 10_000)
ALLOWANCES = st.none() | st.floats(0, 10_000)
MATCHED = st.floats(0, 10_000)


def after(allowance: float | None, failures: int, successes: int = 0) -> float | None:
    outcomes = Outcomes(failures, successes)
    return next_allowance(allowance, outcomes, threshold=THRESHOLD, matched=0)


def test_failures_up_to_the_threshold_bound_nobody() -> None:
    assert after(None, THRESHOLD) is None


def test_the_bound_keeps_failures_at_the_threshold_if_their_share_stays() -> None:
    assert after(None, 40) == THRESHOLD
    assert after(None, 20, successes=60) == THRESHOLD / 0.25


def test_a_site_gets_fewer_matches_than_it_had() -> None:
    first = next_allowance(None, Outcomes(40), threshold=THRESHOLD, matched=10)

    assert first == 5


def test_a_site_where_everything_fails_ends_with_none() -> None:
    allowance, seen = None, []
    for _ in range(6):
        allowance = after(allowance, 40)
        seen.append(allowance)

    assert seen == [18, 9, 4.5, 2.25, 1.125, 0]


def test_after_a_quiet_period_one_match_is_tried() -> None:
    assert after(0.0, 0) == 1


@pytest.mark.parametrize(
    ("outcomes", "allowances"),
    [
        ((0, 10), [1, 5, None]),
        ((0, 0), [1, 2, 4, 8, 16, None]),
        ((5, 5), [1, 3, 9, None]),
        ((1, 0), [1, 1, 1, 1]),
    ],
)
def test_good_periods_give_back_what_was_taken(
    outcomes: tuple[int, int], allowances: list[float | None]
) -> None:
    allowance: float | None = 0.0
    for expected in allowances:
        allowance = after(allowance, *outcomes)
        assert allowance == expected


def test_a_threshold_of_zero_never_bounds() -> None:
    assert next_allowance(3.0, Outcomes(1000), threshold=0, matched=5) is None


def _bound(allowance: float | None) -> float:
    return float("inf") if allowance is None else allowance


@given(ALLOWANCES, COUNTS, COUNTS, THRESHOLDS, MATCHED)
def test_an_allowance_is_never_negative_and_after_a_bad_period_at_most_half(
    allowance: float | None, failures: int, successes: int, threshold: int, matched: float
) -> None:
    outcomes = Outcomes(failures, successes)

    new = next_allowance(allowance, outcomes, threshold=threshold, matched=matched)

    assert _bound(new) >= 0
    if failures > threshold:
        assert new is not None
        assert allowance is None or new <= allowance / 2


@given(ALLOWANCES, st.lists(COUNTS, min_size=2, max_size=6), COUNTS, THRESHOLDS, MATCHED)
def test_more_failures_never_give_more(
    allowance: float | None, failures: list[int], successes: int, threshold: int, matched: float
) -> None:
    bounds = [
        _bound(
            next_allowance(
                allowance, Outcomes(count, successes), threshold=threshold, matched=matched
            )
        )
        for count in sorted(failures)
    ]

    assert all(less >= more for less, more in pairwise(bounds))


@given(st.floats(0, 10_000), st.lists(COUNTS, min_size=12, max_size=12), THRESHOLDS)
def test_it_is_free_after_a_bounded_number_of_periods_without_failure(
    allowance: float, successes: list[int], threshold: int
) -> None:
    bound: float | None = allowance
    for count in successes:
        bound = next_allowance(bound, Outcomes(0, count), threshold=threshold, matched=0)

    # From one match, doubled ten times: more than the largest threshold here.
    assert bound is None

"""Forecast of the end of a campaign: its range is honest, and without a base there is none."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.campaigns.forecast import (
    BINS,
    LONGEST_WINDOW,
    Forecast,
    NoForecast,
    Verdict,
    forecast,
    verdict,
    window_of,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(hours=24)
STEADY = [10] * BINS


def _of(ends: list[int], left: int = 100, *, window: timedelta = DAY) -> Forecast:
    return forecast(total=left + sum(ends), left=left, ends=ends, window=window, now=NOW)


def test_a_steady_rate_goes_on() -> None:
    found = _of(STEADY, left=60)

    assert found.expected == NOW + timedelta(hours=12)
    assert found.per_hour == pytest.approx(5.0)
    assert found.earliest is not None
    assert found.latest is not None
    assert found.earliest < found.expected < found.latest


def test_a_range_is_wider_where_the_rates_differ_more() -> None:
    def width(ends: list[int]) -> timedelta:
        found = _of(ends)
        assert found.earliest is not None
        assert found.latest is not None
        return found.latest - found.earliest

    assert width([2, 18] * 6) > width([5, 15] * 6) > width(STEADY)


def test_rates_that_differ_very_much_tell_no_latest_end() -> None:
    found = _of([*[0] * 5, 1, *[0] * 4, 1, 200])

    assert found.cause is None
    assert found.latest is None
    assert found.expected is not None


@pytest.mark.parametrize(
    ("ends", "left", "window", "reason"),
    [
        ([], 0, DAY, NoForecast.NOTHING_TO_DO),
        (STEADY, 0, DAY, NoForecast.OVER),
        (STEADY, 9, timedelta(minutes=9), NoForecast.TOO_EARLY),
        ([1] * BINS, 9, DAY, NoForecast.TOO_FEW),
        ([*[0] * 10, 50, 50], 9, DAY, NoForecast.TOO_FEW),
        ([*[20] * 9, 0, 0, 0], 9, DAY, NoForecast.STALLED),
    ],
)
def test_without_a_base_nothing_is_forecast(
    ends: list[int], left: int, window: timedelta, reason: NoForecast
) -> None:
    found = _of(ends, left, window=window)

    assert found == Forecast(reason)
    assert found.why_not


@given(st.lists(st.integers(0, 500), min_size=BINS, max_size=BINS), st.integers(1, 10**6))
def test_what_is_expected_is_within_the_range(ends: list[int], left: int) -> None:
    found = _of(ends, left)
    if found.cause is not None:
        return
    assert found.expected is not None
    assert found.earliest is not None
    assert NOW < found.earliest <= found.expected
    assert found.latest is None or found.expected <= found.latest


@given(st.lists(st.integers(5, 50), min_size=BINS, max_size=BINS), st.integers(1, 5000))
def test_more_that_is_left_ends_no_earlier(ends: list[int], left: int) -> None:
    less, more = _of(ends, left), _of(ends, left + 100)
    assert less.earliest is not None
    assert more.earliest is not None
    assert less.earliest <= more.earliest
    assert more.latest is None or (less.latest is not None and less.latest <= more.latest)


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_four_of_five_campaigns_end_within_their_range(spread: float) -> None:
    """By simulation: rates of parts differ, some by chance alone, some by as much as a half."""
    draws, hits, runs = random.Random(19), 0, 400
    for _ in range(runs):

        def one_part() -> int:
            mean = 40 * draws.uniform(1 - spread, 1 + spread)
            return max(0, round(draws.gauss(mean, mean**0.5)))

        found = _of([one_part() for _ in range(BINS)], left=300)
        done = parts = 0
        while done < 300:
            done, parts = done + one_part(), parts + 1
        ended = NOW + parts * DAY / BINS
        assert found.earliest is not None
        assert found.latest is not None
        # The end is known to a part.
        hits += found.earliest <= ended and ended - DAY / BINS <= found.latest
    assert hits >= 0.8 * runs


@pytest.mark.parametrize(
    ("deadline_h", "ended_h", "found", "answer"),
    [
        (None, None, Forecast(), Verdict.NONE),
        (5, 4, Forecast(NoForecast.OVER), Verdict.MET),
        (5, 6, Forecast(NoForecast.OVER), Verdict.MISSED),
        (-1, None, _of(STEADY), Verdict.MISSED),
        (5, None, Forecast(NoForecast.TOO_FEW), Verdict.UNKNOWN),
        (5, None, _of(STEADY), Verdict.UNLIKELY),
        (20, None, _of(STEADY), Verdict.OPEN),
        (90, None, _of(STEADY), Verdict.LIKELY),
        (90, None, _of([*[0] * 5, 1, *[0] * 4, 1, 200], 10_000), Verdict.UNLIKELY),
    ],
)
def test_a_deadline_is_judged_by_the_whole_range(
    deadline_h: int | None, ended_h: int | None, found: Forecast, answer: Verdict
) -> None:
    def at(hours: int | None) -> datetime | None:
        return None if hours is None else NOW + timedelta(hours=hours)

    assert verdict(at(deadline_h), ended_at=at(ended_h), found=found, now=NOW) == answer


def test_the_window_begins_with_the_campaign_and_is_a_day_long_at_most() -> None:
    assert window_of(None, NOW) == timedelta(0)
    assert window_of(NOW + timedelta(hours=1), NOW) == timedelta(0)
    assert window_of(NOW - timedelta(hours=3), NOW) == timedelta(hours=3)
    assert window_of(NOW - timedelta(days=9), NOW) == LONGEST_WINDOW

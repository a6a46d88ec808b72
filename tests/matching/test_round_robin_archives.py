from __future__ import annotations

import math
from bisect import bisect_right
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.round_robin_archives import (
    ARCHIVES,
    SPREAD_RATIO,
    archive_named,
    quantile,
    resolution_for,
)

MOMENTS = st.integers(946_684_800, 4_102_444_800).map(lambda s: datetime.fromtimestamp(s, tz=UTC))


def test_the_archives_hold_a_day_a_week_three_months_and_five_years() -> None:
    spans = [timedelta(seconds=archive.step_s * archive.slots).days for archive in ARCHIVES]

    assert spans == [1, 7, 92, 1827]


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
@given(moment=MOMENTS)
def test_a_slot_is_used_again_after_exactly_one_turn(archive, moment: datetime) -> None:
    turn = timedelta(seconds=archive.step_s * archive.slots)

    assert archive.slot_of(moment) == archive.slot_of(moment + turn)
    assert 0 <= archive.slot_of(moment) < archive.slots
    assert archive.slot_of(moment) != archive.slot_of(moment + timedelta(seconds=archive.step_s))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
@given(moment=MOMENTS)
def test_a_moment_lies_in_its_bin(archive, moment: datetime) -> None:
    start = archive.start_of(moment)

    assert start <= moment < start + timedelta(seconds=archive.step_s)
    assert archive.slot_of(start) == archive.slot_of(moment)
    assert archive.oldest_start(moment) > moment - timedelta(seconds=archive.step_s * archive.slots)


def test_archives_are_found_by_name() -> None:
    assert archive_named("1h").step_s == 3600
    with pytest.raises(KeyError):
        archive_named("2h")


NOW = datetime(2026, 11, 20, 12, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("length", "most", "archive", "step_s"),
    [
        (timedelta(hours=1), 1500, "1min", 60),
        (timedelta(days=1), 1500, "1min", 60),
        (timedelta(days=1), 500, "1min", 180),
        (timedelta(days=7), 1500, "5min", 600),
        (timedelta(days=7), 500, "5min", 1800),
        (timedelta(days=30), 1500, "1h", 3600),
        (timedelta(days=365), 1500, "1d", 86_400),
        (timedelta(days=5 * 365), 1500, "1d", 2 * 86_400),
    ],
)
def test_the_finest_archive_that_reaches_back_is_read_in_points_that_can_be_drawn(
    length: timedelta, most: int, archive: str, step_s: int
) -> None:
    found = resolution_for(NOW - length, NOW, now=NOW, most=most)

    assert (found.archive.name, found.step_s) == (archive, step_s)


@given(
    now=MOMENTS,
    ago=st.timedeltas(timedelta(minutes=1), timedelta(days=1826)),
    share=st.floats(0.001, 1),
    most=st.integers(10, 1500),
    name=st.sampled_from(["", *(archive.name for archive in ARCHIVES)]),
)
def test_never_are_there_more_points_than_asked_for(
    now: datetime, ago: timedelta, share: float, most: int, name: str
) -> None:
    since, until = now - ago, now - ago + share * ago
    chosen = archive_named(name) if name else None

    found = resolution_for(since, until, now=now, most=most, archive=chosen)

    first = max(since, found.archive.oldest_start(now))
    assert len(found.starts(first, until)) <= most
    assert found.step_s % found.archive.step_s == 0
    assert not name or found.archive.name == name


@given(
    values=st.lists(st.floats(0, 1e6), min_size=1, max_size=50),
    share=st.floats(0.01, 1),
)
def test_a_quantile_is_within_the_class_of_the_value_with_its_rank(
    values: list[float], share: float
) -> None:
    borders = [SPREAD_RATIO**number for number in range(200)]
    places = [bisect_right(borders, value) for value in values]
    counts = [places.count(place) for place in range(max(places) + 1)]

    found = quantile(share, counts, minimum=min(values), maximum=max(values))

    exact = sorted(values)[max(1, math.ceil(share * len(values))) - 1]
    assert found == pytest.approx(exact, rel=0.11, abs=1.0)
    assert min(values) <= found <= max(values)


def test_nothing_has_no_quantile() -> None:
    assert quantile(0.5, [], minimum=0, maximum=0) is None
    assert quantile(0.5, [0, 0], minimum=0, maximum=0) is None

"""The bins of levels agree with their samples, whatever order they come in."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matching.round_robin_archives import ARCHIVES, Archive, archive_named
from wms.history import operations as services
from wms.history.models import Bin, Series
from wms.history.operations import MinuteCount, store_counts, store_samples
from wms.history.selectors import read_series

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def seconds(number: float) -> datetime:
    return NOON + timedelta(seconds=number)


def test_a_bin_tells_minimum_average_maximum_and_last_of_its_samples() -> None:
    for second, value in ((0, 4), (20, 1), (40, 7), (60, 100)):
        store_samples({"x": value}, now=seconds(second))

    points = read_series(["x"], archive="1min", now=seconds(61))["x"]

    assert [(p.minimum, p.average, p.maximum, p.last, p.samples) for p in points] == [
        (1, 4, 7, 7, 3),
        (100, 100, 100, 100, 1),
    ]
    assert points[0].start == NOON
    assert read_series(["x"], archive="1h", now=seconds(61))["x"][0].average == 28


def test_the_number_of_rows_is_fixed_whatever_time_passes() -> None:
    ring = archive_named("1d")
    for day in range(0, ring.slots * 2, 100):
        store_samples({"x": day}, now=NOON + timedelta(days=day))

    rows = Bin.objects.filter(series__name="x", archive=ARCHIVES.index(ring)).count()
    assert rows <= ring.slots
    last = NOON + timedelta(days=3600)
    points = read_series(["x"], archive="1d", now=last)["x"]
    assert all(point.start > last - timedelta(days=ring.slots) for point in points)


def test_a_sampler_that_was_down_leaves_a_gap() -> None:
    store_samples({"x": 1}, now=NOON)
    store_samples({"x": 2}, now=NOON + timedelta(hours=30))

    points = read_series(["x"], archive="1min", now=NOON + timedelta(hours=30))["x"]

    assert [point.average for point in points] == [2]


def test_a_sample_that_comes_too_late_for_its_slot_changes_nothing() -> None:
    store_samples({"x": 2}, now=NOON + timedelta(days=1))
    store_samples({"x": 1}, now=NOON)

    (point,) = read_series(["x"], archive="1min", now=NOON + timedelta(days=1))["x"]
    assert (point.average, point.samples) == (2, 1)


@pytest.mark.parametrize("ahead", [timedelta(days=1), timedelta(days=7 * 92), timedelta(days=1827)])
def test_what_was_stored_while_a_clock_was_ahead_keeps_nothing_out(ahead: timedelta) -> None:
    now = timezone.now()
    store_samples({"x": 9}, now=now + ahead)

    store_samples({"x": 1}, now=now)
    store_counts([MinuteCount.number("n", now.replace(second=0, microsecond=0) + ahead, 9)])
    store_counts([MinuteCount.number("n", now.replace(second=0, microsecond=0), 1)])

    for archive in ARCHIVES:
        found = read_series(["x", "n"], archive=archive.name, now=now)
        assert [point.total for point in found["x"]] == [1], archive.name
        assert [point.total for point in found["n"]] == [1], archive.name


def test_a_sampler_that_is_killed_while_it_stores_leaves_all_archives_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store_samples({"x": 1}, now=NOON)
    monkeypatch.setattr(services, "ARCHIVES", (*ARCHIVES[:2], None))
    with pytest.raises(AttributeError):
        store_samples({"x": 5}, now=seconds(10))

    for archive in ARCHIVES:
        points = read_series(["x"], archive=archive.name, now=seconds(10))["x"]
        assert [point.total for point in points] == [1]


def test_an_unknown_archive_is_refused_and_an_unknown_series_is_empty() -> None:
    with pytest.raises(KeyError):
        read_series(["x"], archive="2h", now=NOON)
    assert read_series(["x"], archive="1h", now=NOON) == {"x": []}


def test_a_thousand_series_take_one_statement_for_each_archive() -> None:
    values = {f"pilots.running@Site{number}": float(number) for number in range(1000)}
    store_samples(values, now=NOON)

    with CaptureQueriesContext(connection) as asked:
        store_samples(values, now=seconds(10))

    inserts = [query for query in asked.captured_queries if "INSERT" in query["sql"]]
    assert len(inserts) == len(ARCHIVES)
    assert Series.objects.count() == 1000


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    st.lists(
        # In the finest archive nothing is a whole turn apart, so no bin is overwritten.
        st.tuples(st.integers(0, 85_000), st.integers(-50, 50)),
        min_size=1,
        max_size=15,
        unique_by=lambda sample: sample[0],
    )
)
def test_bins_agree_with_their_samples_in_any_order_and_with_any_gaps(
    samples: list[tuple[int, int]],
) -> None:
    Bin.objects.all().delete()

    for second, value in samples:
        store_samples({"x": value}, now=seconds(second))

    for archive in ARCHIVES:
        points = read_series(["x"], archive=archive.name, now=seconds(86_000))["x"]
        expected = _model(samples, archive)
        assert [(p.start, p.minimum, p.maximum, p.samples, p.last, p.total) for p in points] == [
            (
                start, min(values.values()), max(values.values()), len(values),
                values[max(values)], sum(values.values()),
            )
            for start, values in sorted(expected.items())
        ]  # fmt: skip
        for point in points:
            values = expected[point.start].values()
            assert point.average == pytest.approx(sum(values) / len(values))


def _model(samples: list[tuple[int, int]], archive: Archive) -> dict[datetime, dict[int, int]]:
    bins: dict[datetime, dict[int, int]] = defaultdict(dict)
    for second, value in samples:
        bins[archive.start_of(seconds(second))][second] = value
    return bins

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matching.rings import ARCHIVES, archive_named
from wms.history.models import Bin, Series
from wms.history.sampling import run_cycle
from wms.history.selectors import read_series
from wms.history.services import store_samples

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def seconds(number: float) -> datetime:
    return NOON + timedelta(seconds=number)


def test_a_bin_tells_minimum_average_and_maximum_of_its_samples() -> None:
    for second, value in ((0, 4), (20, 1), (40, 7), (60, 100)):
        store_samples({"x": value}, now=seconds(second))

    points = read_series(["x"], archive="1min", now=seconds(61))["x"]

    assert [(p.minimum, p.average, p.maximum, p.count) for p in points] == [
        (1, 4, 7, 3),
        (100, 100, 100, 1),
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
    assert (point.average, point.count) == (2, 1)


def test_an_unknown_archive_is_refused_and_an_unknown_series_is_empty() -> None:
    with pytest.raises(KeyError):
        read_series(["x"], archive="2h", now=NOON)
    assert read_series(["x"], archive="1h", now=NOON) == {"x": []}


def test_the_sampler_counts_every_state(submit) -> None:
    submit("JOB A step.sub")

    run_cycle(NOON)

    series = read_series(["dags.idle", "dags.running"], archive="1min", now=NOON)
    assert series["dags.idle"][0].average == 1
    assert series["dags.running"][0].average == 0
    assert Series.objects.filter(name="pilots.running").exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(-50, 50)), min_size=1, max_size=12))
def test_bins_agree_with_a_plain_model(samples: list[tuple[int, int]]) -> None:
    Bin.objects.all().delete()
    samples = sorted(samples, key=lambda sample: sample[0])
    model: dict[datetime, list[int]] = {}
    for second, value in samples:
        store_samples({"x": value}, now=seconds(second))
        model.setdefault(archive_named("1min").start_of(seconds(second)), []).append(value)

    points = read_series(["x"], archive="1min", now=seconds(400))["x"]

    assert [(p.start, p.minimum, p.maximum, p.count) for p in points] == [
        (start, min(values), max(values), len(values)) for start, values in sorted(model.items())
    ]
    for point in points:
        values = model[point.start]
        assert point.average == pytest.approx(sum(values) / len(values))

"""Counts are exact, add up over all archives, and are not doubled by counting again."""

from __future__ import annotations

import math
import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matching.round_robin_archives import ARCHIVES, Resolution, archive_named, quantile
from tests import factories
from wms.core.models import User
from wms.dags.models import NegotiationCycle
from wms.history.counting import COUNTED_MINUTES, WAITING, count, count_up_to_now
from wms.history.models import Bin
from wms.history.operations import MinuteCount, store_counts
from wms.history.selectors import read_series, read_spread
from wms.jobs.attempts.ending import PayloadEnd, end_attempt
from wms.jobs.models import Job, JobEvent, LoggedJobEvent
from wms.jobs.operations import kill_jobs

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def total(series: str, archive: str, now: datetime = NOON + timedelta(hours=23)) -> float:
    return sum(point.total for point in read_series([series], archive=archive, now=now)[series])


def class_of(value: float) -> int:
    return 0 if value < 1 else math.floor(math.log(value) / math.log(1.1)) + 1


def spread(minute: datetime, values: list[float]) -> MinuteCount:
    places = [class_of(value) for value in values]
    classes = [places.count(place) for place in range(max(places) + 1)]
    return MinuteCount("w", minute, len(values), sum(values), min(values), max(values), classes)


_PARTS = st.lists(
    st.dictionaries(st.integers(0, 700), st.integers(0, 1000), min_size=1, max_size=8),
    min_size=1,
    max_size=4,
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(_PARTS)
def test_sums_are_equal_in_all_archives_and_those_of_what_was_counted_last(
    parts: list[dict[int, int]],
) -> None:
    Bin.objects.all().delete()
    known: dict[int, int] = {}

    for part in parts:
        counted = [
            MinuteCount.number("n", NOON + at * MINUTE, number) for at, number in part.items()
        ]
        store_counts(counted)
        store_counts(counted)
        known |= part

    assert {total("n", archive.name) for archive in ARCHIVES} == {sum(known.values())}
    for archive in ARCHIVES:
        for point in read_series(["n"], archive=archive.name, now=NOON + timedelta(hours=23))["n"]:
            of_bin = [
                number for at, number in known.items()
                if archive.start_of(NOON + at * MINUTE) == point.start
            ]  # fmt: skip
            assert (point.total, point.samples) == (sum(of_bin), len(of_bin))
            assert (point.minimum, point.maximum) == (min(of_bin), max(of_bin))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    st.dictionaries(
        st.integers(0, 300),
        # The database refuses means that are too small for it.
        st.lists(st.floats(0, 10_000, allow_subnormal=False), min_size=1, max_size=6),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([0.5, 0.9, 0.99]),
)
def test_percentiles_over_many_bins_are_those_of_all_values_to_within_a_class(
    waits: dict[int, list[float]], share: float
) -> None:
    Bin.objects.all().delete()
    store_counts([spread(NOON + at * MINUTE, values) for at, values in waits.items()])

    values = sorted(value for values in waits.values() for value in values)
    exact = values[max(1, math.ceil(share * len(values))) - 1]
    day = archive_named("1d").start_of(NOON)
    (point,) = read_series(["w"], archive="1d", now=NOON)["w"]
    joined = read_spread(
        "w", Resolution(archive_named("1h"), 24), since=day, until=day + timedelta(days=1),
        now=NOON,
    )[int(day.timestamp())]  # fmt: skip

    for each in (point, joined):
        assert each.counts is not None
        assert sum(each.counts) == each.samples == len(values)
        found = quantile(share, each.counts, minimum=each.minimum, maximum=each.maximum)
        assert found is not None
        assert abs(found - exact) <= max(1.0, 0.1 * exact + 1e-6)


def test_storing_older_counts_does_not_overwrite_what_the_ring_holds_of_later() -> None:
    store_counts([MinuteCount.number("n", NOON + timedelta(days=1), 5)])
    store_counts([MinuteCount.number("n", NOON, 7)])

    assert total("n", "1min", NOON + timedelta(days=1)) == 5


@pytest.fixture
def ended_jobs(alice: User) -> datetime:
    """Three jobs of a DAG: done, failed by its exit code, and killed; when they were submitted."""
    factories.running_dag(alice, node_count=3)
    worker = factories.pilot()
    factories.run_job(worker)
    factories.run_job(worker, exit_code=1)
    claimed = factories.claim(worker)
    assert claimed is not None
    kill_jobs([claimed.job.pk], actor=factories.SYSTEM, reason="not needed")
    return LoggedJobEvent.objects.order_by("pk")[0].created_at


def sums(counted: list[MinuteCount]) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in counted:
        found[each.series] = found.get(each.series, 0) + each.total
    return found


def test_what_became_of_jobs_is_counted_from_their_events(ended_jobs: datetime) -> None:
    found = sums(count(ended_jobs, datetime.now(UTC) + MINUTE))

    assert {name: found[f"throughput.{name}"] for name in ("submitted", "started")} == {
        "submitted": 3,
        "started": 2,
    }
    assert (found["throughput.done"], found["throughput.failed"], found["throughput.killed"]) == (
        1, 1, 1,
    )  # fmt: skip
    site = JobEvent.objects.get(event="fail").job.attempts.get().site_name
    assert found["failures.exit_code"] == found[f"failures@{site}"] == 1
    assert found[f"throughput.done@{site}"] == 1


def test_missing_outputs_are_counted_by_the_cause_and_not_by_what_a_pilot_says(
    alice: User,
) -> None:
    said = PayloadEnd(None, reason="output files vanish")
    lacking = PayloadEnd(0, missing_outputs=("out.txt",))
    began = datetime.now(UTC) - MINUTE
    worker = factories.pilot()
    for end in (said, lacking):
        factories.job(alice)
        claimed = factories.claim(worker)
        assert claimed is not None
        about = {"pilot_id": worker.pk, "actor": factories.SYSTEM, "now": datetime.now(UTC)}
        end_attempt(claimed.job.pk, claimed.number, end=end, **about)

    found = sums(count(began, datetime.now(UTC) + MINUTE))

    assert (found["failures.other"], found["failures.output_missing"]) == (1, 1)


def test_how_long_jobs_waited_is_told_of_the_minute_in_which_they_started(
    ended_jobs: datetime,
) -> None:
    started = Job.objects.filter(events__event="start")
    started.update(created_at=ended_jobs - timedelta(seconds=90))

    (found,) = (each for each in count(ended_jobs, datetime.now(UTC)) if each.series == WAITING)

    assert found.count == 2
    assert 90 <= found.minimum <= found.maximum < 120
    assert sum(found.classes or ()) == 2
    assert found.classes is not None
    assert found.classes[class_of(found.minimum)] >= 1


def test_minutes_without_anything_are_known_to_be_such() -> None:
    found = count(NOON + timedelta(seconds=30), NOON + timedelta(seconds=150))

    assert [each.minute for each in found if each.series == COUNTED_MINUTES] == [
        NOON, NOON + MINUTE, NOON + 2 * MINUTE,
    ]  # fmt: skip
    assert {each.total for each in found} == {0}


def test_counting_twice_or_by_two_samplers_counts_everything_once(ended_jobs: datetime) -> None:
    for _ in range(3):
        count_up_to_now(ended_jobs)

    now = datetime.now(UTC)
    assert [total("throughput.submitted", archive.name, now) for archive in ARCHIVES] == [3] * 4


def test_what_was_missed_is_caught_up_with_by_and_by_and_the_latest_is_counted_at_once(
    ended_jobs: datetime,
) -> None:
    settled = count_up_to_now(datetime.now(UTC) - timedelta(minutes=40))

    now = datetime.now(UTC)
    assert total("throughput.submitted", "1min", now) == 3
    known = {
        p.start for p in read_series([COUNTED_MINUTES], archive="1min", now=now)[COUNTED_MINUTES]
    }
    assert 15 <= len(known) <= 19
    assert now - settled > timedelta(minutes=24)

    for _ in range(3):
        settled = count_up_to_now(settled)
    assert len(read_series([COUNTED_MINUTES], archive="1min", now=now)[COUNTED_MINUTES]) >= 40


def test_a_clock_that_was_set_back_leaves_nothing_uncounted(ended_jobs: datetime) -> None:
    count_up_to_now(datetime.now(UTC) + timedelta(hours=1))

    assert total("throughput.submitted", "1min", datetime.now(UTC)) == 3


@pytest.mark.slow
def test_a_sampler_that_was_away_too_long_leaves_a_gap(ended_jobs: datetime) -> None:
    settled = datetime.now(UTC) - timedelta(days=3)
    for _ in range(12 * 4 + 1):
        settled = count_up_to_now(settled)

    points = read_series([COUNTED_MINUTES], archive="1min", now=datetime.now(UTC))
    assert len(points[COUNTED_MINUTES]) in (12 * 60 + 1, 12 * 60 + 2)


@pytest.mark.django_db(transaction=True)
def test_events_of_a_transaction_that_commits_late_are_counted(alice: User) -> None:
    submitted, may_commit = threading.Event(), threading.Event()

    def submit_slowly() -> None:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(
                "INSERT INTO jobs_jobevent (job_id, event, from_state, to_state, actor, reason,"
                " facts, created_at) VALUES (1, 'enqueue', 'received', 'waiting', 'x', '', '{}',"
                " statement_timestamp())"
            )
            submitted.set()
            may_commit.wait(30)
            cursor.execute("COMMIT")
        connection.close()

    slow = threading.Thread(target=submit_slowly)
    slow.start()
    submitted.wait(30)
    first = count_up_to_now(None)
    # As if minutes had passed: all that was counted is what the cursor allows to be left alone.
    assert total(COUNTED_MINUTES, "1min", datetime.now(UTC)) == 0
    may_commit.set()
    slow.join()

    then = count_up_to_now(first)

    assert total(COUNTED_MINUTES, "1min", datetime.now(UTC)) == 1
    assert first <= JobEvent.objects.get().created_at < then


def test_matches_are_counted_in_the_minutes_of_their_negotiations() -> None:
    for second, matches in ((5, 2), (50, 3), (61, 4)):
        NegotiationCycle.objects.create(
            started_at=NOON + timedelta(seconds=second), publish_s=0, read_s=0, decide_s=0,
            carry_out_s=0, ads=1, requests=9, autoclusters=1, matches=matches, bound=matches,
        )  # fmt: skip

    store_counts(count(NOON + timedelta(seconds=70), NOON + timedelta(seconds=80)))

    points = read_series(["negotiation.matches"], archive="1min", now=NOON + 2 * MINUTE)
    assert [point.total for point in points["negotiation.matches"]] == [5, 4]

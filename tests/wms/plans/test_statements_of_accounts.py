"""The plans of sums that are added to: accounts, failures by cause, counts of minutes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from tests.wms.plans.query_plans import (
    analyze,
    explain,
    indexes,
    rows_read,
    run,
    scanned_whole,
    written,
)
from wms.accounting import sql as accounting
from wms.accounting.core_seconds import BY_LABEL, DAILY
from wms.accounting.models import Submitter
from wms.core.models import User
from wms.failures import sql as failures
from wms.failures.models import FailureGroup
from wms.history import sql as history
from wms.jobs import sql as jobs

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_submitters_are_charged_by_their_ids(alice: User) -> None:
    run(
        """
        WITH made AS (
            INSERT INTO accounting_accountinggroup
                (name, quota_kind, quota, accepts_surplus, share, has_job_sharing)
            SELECT 'g' || n, 'static', 1, true, 1, false FROM generate_series(1, 20000) AS n
            RETURNING id
        )
        INSERT INTO accounting_submitter
            (user_id, group_id, real_priority, factor, used_slots, used_slot_s)
        SELECT %s, id, 0.5, 1000, 0, 0 FROM made
        """,
        [alice.pk],
    )
    analyze("accounting_submitter")
    ids = list(Submitter.objects.order_by("pk").values_list("pk", flat=True)[1000:1010])

    steps = explain(accounting.CHARGE_SUBMITTERS, [NOON, ids, *[[1.0] * 10] * 3])

    assert not scanned_whole(steps, "accounting_submitter")
    assert rows_read(steps, "accounting_submitter") == 10


def test_core_seconds_are_added_by_the_key_of_their_account() -> None:
    run(
        """
        INSERT INTO accounting_dailyuse (day, site_name, owner_name, useful_s, failed_s, lost_s,
                                         idle_s, validation_s, attempts, pilots)
        SELECT date '2026-11-20' - n, 'site-' || site, 'user-' || owner, 1, 1, 1, 1, 1, 1, 1
        FROM generate_series(0, 99) AS n, generate_series(1, 20) AS site,
             generate_series(1, 20) AS owner
        """
    )
    analyze("accounting_dailyuse")
    owners = [f"user-{n}" for n in range(1, 41)]
    keys = [[date(2026, 11, 20)] * 40, ["site-1"] * 40, [""] * 40, owners]

    steps = explain(DAILY.statement, [*keys, *[[1.0] * 40] * 7, *[[1] * 40] * 4])

    assert not scanned_whole(steps, "accounting_dailyuse")
    upsert = written(steps, "accounting_dailyuse")
    assert upsert["Conflict Arbiter Indexes"] == ["daily_use_unique"]
    assert (upsert["Conflicting Tuples"], upsert["Tuples Inserted"]) == (20, 20)


def test_use_is_added_by_the_key_of_its_label() -> None:
    run(
        """
        INSERT INTO accounting_labeluse (day, label, site_name, owner_name, useful_s, failed_s,
                                         lost_s, attempts)
        SELECT date '2026-11-20' - n, 'label-' || label, 'site-1', 'user-1', 1, 1, 1, 1
        FROM generate_series(0, 999) AS n, generate_series(1, 20) AS label
        """
    )
    analyze("accounting_labeluse")
    labels = [f"label-{n}" for n in range(1, 41)]
    keys = [[date(2026, 11, 20)] * 40, labels, ["site-1"] * 40, [""] * 40, ["user-1"] * 40]

    steps = explain(BY_LABEL.statement, [*keys, *[[1.0] * 40] * 5, *[[1] * 40] * 3])

    assert not scanned_whole(steps, "accounting_labeluse")
    upsert = written(steps, "accounting_labeluse")
    assert upsert["Conflict Arbiter Indexes"] == ["label_use_unique"]
    assert (upsert["Conflicting Tuples"], upsert["Tuples Inserted"]) == (20, 20)


def test_core_seconds_of_dags_are_added_by_the_key_of_their_row() -> None:
    run(
        """
        INSERT INTO jobs_topicuse (topic, topic_key, useful_s, failed_s, lost_s, done_count,
                                   failed_count, lost_count)
        SELECT topic, n, 1, 1, 1, 1, 1, 1
        FROM generate_series(1, 20000) AS n, unnest(array['dag-jobs', 'cluster']) AS topic
        """
    )
    analyze("jobs_topicuse")
    keys = [["cluster"] * 40, [*range(101, 121), *range(30001, 30021)]]

    steps = explain(jobs.ADD_TOPIC_USES, [*keys, *[[1.0] * 40] * 3, *[[1] * 40] * 3])

    assert not scanned_whole(steps, "jobs_topicuse")
    upsert = written(steps, "jobs_topicuse")
    assert upsert["Conflict Arbiter Indexes"] == ["topic_use_unique"]
    assert (upsert["Conflicting Tuples"], upsert["Tuples Inserted"]) == (20, 20)


@pytest.fixture
def groups() -> list[int]:
    """5,000 groups of failures, of each ten hours; their ids."""
    run(
        """
        WITH made AS (
            INSERT INTO failures_failuregroup
                (fingerprint, kind, text, sample, category, state, state_reason, first_seen,
                 last_seen)
            SELECT n::text, 'job', 'x', 'x', 'unknown', 'active', '', now(), now()
            FROM generate_series(1, 5000) AS n RETURNING id
        )
        INSERT INTO failures_failurebin (group_id, span, start, site_name, count)
        SELECT id, 'hour', '2026-11-20 12:00Z'::timestamptz + n * interval '1 hour', '', 1
        FROM made, generate_series(0, 9) AS n
        """
    )
    analyze("failures_failuregroup")
    analyze("failures_failurebin")
    return list(FailureGroup.objects.order_by("pk").values_list("pk", flat=True))


def test_failures_are_added_by_their_groups_and_the_keys_of_their_bins(groups: list[int]) -> None:
    some = groups[1000:1010]
    bins = {
        "groups": some * 2,
        "spans": ["hour"] * 20,
        "starts": [NOON] * 10 + [NOON - timedelta(hours=1)] * 10,
        "sites": [""] * 20,
        "counts": [1] * 20,
    }
    counts = {"groups": some, "counts": [1] * 10, "firsts": [NOON] * 10, "lasts": [NOON] * 10}

    into_bins = explain(failures.ADD_TO_BINS, bins)
    into_groups = explain(failures.ADD_TO_GROUPS, counts)

    upsert = written(into_bins, "failures_failurebin")
    assert upsert["Conflict Arbiter Indexes"] == ["failurebin_unique"]
    assert (upsert["Conflicting Tuples"], upsert["Tuples Inserted"]) == (10, 10)
    assert not scanned_whole(into_bins, "failures_failurebin")
    assert not scanned_whole(into_groups, "failures_failuregroup")
    assert rows_read(into_groups, "failures_failuregroup") == 10


def test_emptied_bins_are_looked_for_among_those_of_their_groups(groups: list[int]) -> None:
    run("UPDATE failures_failurebin SET count = 0 WHERE group_id = %s", [groups[1000]])

    steps = explain(failures.REMOVE_EMPTY_BINS, [groups[1000:1010]])

    assert not scanned_whole(steps, "failures_failurebin")
    assert indexes(steps) == {"failurebin_unique"}
    assert rows_read(steps, "failures_failurebin") == 10


def test_counts_of_minutes_replace_those_of_their_places_in_the_ring(rings: list[int]) -> None:
    steps = explain(
        history.STORE_COUNTS,
        {
            "series": rings[:20],
            "slots": [7] * 10 + [1200] * 10,
            "starts": [NOON + timedelta(days=1)] * 20,
            "counts": [1] * 20,
            "totals": [1.0] * 20,
            "minima": [1.0] * 20,
            "maxima": [1.0] * 20,
            "classes": [None] * 20,
        },
    )

    assert not scanned_whole(steps, "history_bin")
    upsert = written(steps, "history_bin")
    assert upsert["Conflict Arbiter Indexes"] == ["bin_unique"]
    assert (upsert["Conflicting Tuples"], upsert["Tuples Inserted"]) == (10, 10)


def test_matches_are_counted_by_the_times_of_their_cycles() -> None:
    run(
        """
        INSERT INTO dags_negotiationcycle (started_at, publish_s, read_s, decide_s, carry_out_s,
                                           ads, requests, autoclusters, matches, bound, reasons)
        SELECT '2026-11-20 12:00Z'::timestamptz - n * interval '5 seconds', 0, 0, 0, 0,
               1, 1, 1, n % 2, 1, '{}'
        FROM generate_series(1, 50000) AS n
        """
    )
    analyze("dags_negotiationcycle")

    steps = explain(history.COUNT_MATCHES, {"since": NOON - timedelta(minutes=2), "until": NOON})

    assert not scanned_whole(steps, "dags_negotiationcycle")
    assert rows_read(steps, "dags_negotiationcycle") <= 24


def test_the_oldest_ended_attempts_are_taken_by_their_keys() -> None:
    run("INSERT INTO jobs_endedattempt (attempt_id) SELECT generate_series(1, 50000)")
    analyze("jobs_endedattempt")

    steps = explain(jobs.TAKE_ENDED_ATTEMPTS, [100])

    assert not scanned_whole(steps, "jobs_endedattempt")
    assert rows_read(steps, "jobs_endedattempt") <= 200

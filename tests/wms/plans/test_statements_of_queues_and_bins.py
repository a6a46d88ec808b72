"""The plans of TaskQueues that come and go, and of counts that are kept in bins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.wms.plans.explaining import explain, rows_read, run, scanned_whole
from wms.bulk import sql as bulk
from wms.bulk.models import BulkOperation
from wms.core.models import User
from wms.failures import sql as failures
from wms.history import sql as history
from wms.history.models import Series
from wms.taskqueues import sql as taskqueues
from wms.taskqueues.models import TaskQueue, WaitingJob

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def test_jobs_leave_by_their_ids(waiting_jobs: None) -> None:
    ids = list(WaitingJob.objects.order_by("pk").values_list("pk", flat=True)[1000:1100])

    for statement in (taskqueues.LEAVE_TASK_QUEUES, taskqueues.LEAVE_UNLESS_CLAIMED):
        steps = explain(statement, [ids])

        assert not scanned_whole(steps, "taskqueues_waitingjob")
        assert rows_read(steps, "taskqueues_waitingjob") <= 200
        ids = [each + 1000 for each in ids]


def test_task_queues_are_locked_and_removed_by_their_keys_and_ids(waiting_jobs: None) -> None:
    rows = list(TaskQueue.objects.order_by("pk").values_list("pk", "key")[1000:1010])
    ids = [pk for pk, _ in rows]
    WaitingJob.objects.filter(task_queue__in=ids).delete()

    joined = explain(taskqueues.LOCK_TASK_QUEUES, [[key for _, key in rows]])
    locked = explain(taskqueues.LOCK_EMPTY, [ids])
    removed = explain(taskqueues.REMOVE_EMPTY, [ids])

    for steps in (joined, locked, removed):
        for table in ("taskqueue", "waitingjob", "tally", "ticket"):
            assert not scanned_whole(steps, f"taskqueues_{table}")
        assert rows_read(steps, "taskqueues_taskqueue") == 10


def test_outcomes_of_a_batch_are_written_by_their_objects(alice: User) -> None:
    operation = BulkOperation.objects.create(
        owner=alice, list_name="jobs", action="hold", snapshot_at=datetime.now(UTC)
    )
    run(
        "INSERT INTO bulk_bulkitem (operation_id, object_id)"
        " SELECT %s, n FROM generate_series(1, 50000) AS n",
        [operation.pk],
    )
    run("ANALYZE bulk_bulkitem")
    ids = list(range(1000, 1100))

    steps = explain(bulk.SETTLE_ITEMS, [ids, ["done"] * 100, [""] * 100, operation.pk])

    assert not scanned_whole(steps, "bulk_bulkitem")
    assert rows_read(steps, "bulk_bulkitem") == 100


@pytest.fixture
def rings() -> list[int]:
    """A hundred series, of each a thousand minutes; their ids."""
    series = Series.objects.bulk_create([Series(name=f"s{n}") for n in range(100)])
    run(
        """
        INSERT INTO history_bin
            (series_id, archive, slot, start, count, total, minimum, maximum, last)
        SELECT series.id, 0, slot, '2026-11-20 12:00Z'::timestamptz + slot * interval '1 minute',
               1, 1, 1, 1, 1
        FROM history_series AS series, generate_series(0, 999) AS slot
        """
    )
    run("ANALYZE history_series")
    run("ANALYZE history_bin")
    return [each.pk for each in series]


def test_a_coarser_bin_is_made_from_the_few_that_are_in_it(rings: list[int]) -> None:
    since = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)

    steps = explain(
        history.FOLD_BINS,
        {
            "series": rings[:20],
            "archive": 1,
            "step": 600,
            "turn": 1000,
            "slots": list(range(30, 40)),
            "since": since,
            "until": since + timedelta(minutes=9),
        },
    )

    assert not scanned_whole(steps, "history_bin")
    assert rows_read(steps, "history_bin") == 200


def test_a_chart_reads_the_bins_of_its_series_alone(rings: list[int]) -> None:
    since = datetime(2026, 11, 20, 12, tzinfo=UTC)
    about = {"names": ["s7"], "archive": 0, "since": since, "until": since + timedelta(days=1)}

    for statement in (history.READ_BINS, history.READ_POINTS):
        steps = explain(statement, {**about, "step": 600})

        assert not scanned_whole(steps, "history_bin")
        assert rows_read(steps, "history_bin") == 1000


def test_old_bins_are_found_by_their_time() -> None:
    run(
        """
        WITH made AS (
            INSERT INTO failures_failuregroup
                (fingerprint, kind, text, sample, category, state, state_reason, first_seen,
                 last_seen)
            SELECT n::text, 'job', 'x', 'x', 'unknown', 'active', '', now(), now()
            FROM generate_series(1, 100) AS n RETURNING id
        )
        INSERT INTO failures_failurebin (group_id, span, start, site_name, count)
        SELECT id, 'hour', '2026-11-20 12:00Z'::timestamptz + n * interval '1 hour', '', 1
        FROM made, generate_series(1, 300) AS n
        """
    )
    run("ANALYZE failures_failurebin")

    steps = explain(
        failures.REMOVE_OLD_BINS, ["hour", datetime(2026, 11, 20, 14, tzinfo=UTC), 5000]
    )

    assert not scanned_whole(steps, "failures_failurebin")
    assert rows_read(steps, "failures_failurebin") == 200

"""The plans of TaskQueues that come and go, and of counts that are kept in bins."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

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
from wms.bulk import sql as bulk
from wms.bulk.models import BulkOperation
from wms.core import sql as core
from wms.core.models import User
from wms.failures import sql as failures
from wms.history import sql as history
from wms.jobs import sql as jobs
from wms.jobs.models import InputSet, Job
from wms.taskqueues import sql as taskqueues
from wms.taskqueues.models import TaskQueue, Ticket, WaitingJob

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def test_jobs_leave_by_their_ids(waiting_jobs: None) -> None:
    ids = list(WaitingJob.objects.order_by("pk").values_list("pk", flat=True)[1000:1100])

    for statement in (taskqueues.LEAVE_TASK_QUEUES, taskqueues.LEAVE_UNLESS_CLAIMED):
        steps = explain(statement, [ids])

        assert not scanned_whole(steps, "taskqueues_waitingjob")
        assert rows_read(steps, "taskqueues_waitingjob") <= 200
        ids = [each + 1000 for each in ids]


def test_jobs_move_to_other_task_queues_by_their_ids(waiting_jobs: None) -> None:
    ids = list(WaitingJob.objects.order_by("pk").values_list("pk", flat=True)[1000:1100])
    target = TaskQueue.objects.values_list("pk", flat=True).first()

    steps = explain(taskqueues.MOVE_WAITING, [ids, [target] * len(ids), [0] * len(ids)])

    assert not scanned_whole(steps, "taskqueues_waitingjob")
    assert rows_read(steps, "taskqueues_waitingjob") <= 200
    assert WaitingJob.objects.filter(pk__in=ids, task_queue=target).count() == len(ids)


def test_scopes_are_locked_by_their_ids() -> None:
    run("INSERT INTO jobs_siteset (key, names) VALUES ('x', '{site-a}')")
    run(
        "INSERT INTO jobs_sitescope (id, sites_id, environment_template, environment, own_ad)"
        " SELECT n, (SELECT id FROM jobs_siteset), '', '{}', '{}'"
        " FROM generate_series(1, 20000) AS n"
    )
    analyze("jobs_sitescope")

    steps = explain(jobs.LOCK_SCOPES, [[5, 17]])

    assert not scanned_whole(steps, "jobs_sitescope")
    assert rows_read(steps, "jobs_sitescope") == 2


def test_sets_of_inputs_are_locked_by_their_keys_and_found_by_names() -> None:
    run(
        "INSERT INTO jobs_inputset (key, owner_id, names)"
        " SELECT 'key' || n, 1, ARRAY['/' || n, '/' || n + 1]"
        " FROM generate_series(1, 20000) AS n"
    )
    analyze("jobs_inputset")

    locked = explain(jobs.LOCK_INPUT_SETS, [["key5", "key17"]])
    named = InputSet.objects.filter(is_asleep=False, names__overlap=["/7"]).order_by("pk")[:100]
    sql, values = named.query.sql_with_params()
    found = explain(sql, list(values))

    assert not scanned_whole(locked, "jobs_inputset")
    assert rows_read(locked, "jobs_inputset") == 2
    assert "input_set_by_name" in indexes(found)
    assert not scanned_whole(found, "jobs_inputset")


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
    analyze("bulk_bulkitem")
    ids = list(range(1000, 1100))

    steps = explain(bulk.SETTLE_ITEMS, [ids, ["done"] * 100, [""] * 100, operation.pk])

    assert not scanned_whole(steps, "bulk_bulkitem")
    assert rows_read(steps, "bulk_bulkitem") == 100


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


def test_the_largest_sites_are_found_by_the_bins_of_their_series(rings: list[int]) -> None:
    run("UPDATE history_series SET name = 'pilots.running@' || name WHERE name IN ('s7', 's8')")
    since = datetime(2026, 11, 20, 12, tzinfo=UTC)
    about = {"pattern": "pilots.running@%", "top": 1, "is_level": True, "step": 600}

    steps = explain(
        history.READ_RANKED,
        {**about, "archive": 0, "since": since, "until": since + timedelta(days=1)},
    )

    assert not scanned_whole(steps, "history_bin")
    assert rows_read(steps, "history_bin") == 2000


def test_the_latest_samples_are_found_by_their_places_in_the_ring(rings: list[int]) -> None:
    run("UPDATE history_bin SET last_at = start")
    analyze("history_bin")
    since = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)

    steps = explain(
        history.READ_LATEST,
        {
            "names": [f"s{n}" for n in range(50)],
            "slots": list(range(30, 34)),
            "since": since,
        },
    )

    assert not scanned_whole(steps, "history_bin")
    assert rows_read(steps, "history_bin") == 200


def test_a_long_inbox_is_not_counted_to_its_end() -> None:
    run(
        """
        INSERT INTO core_inboxentry (topic, key, kind)
        SELECT 'dag-jobs', n, 'look' FROM generate_series(1, 20000) AS n
        """
    )
    analyze("core_inboxentry")

    steps = explain(core.COUNT_INBOX, {"limit": 1000})

    assert rows_read(steps, "core_inboxentry") == 1000


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
    analyze("failures_failurebin")

    steps = explain(
        failures.REMOVE_OLD_BINS, ["hour", datetime(2026, 11, 20, 14, tzinfo=UTC), 5000]
    )

    assert not scanned_whole(steps, "failures_failurebin")
    assert rows_read(steps, "failures_failurebin") == 200


def test_task_queues_are_made_by_their_keys(waiting_jobs: None, alice: User) -> None:
    needs = [
        {
            "key": str(n), "owner_id": alice.pk, "owner_group": "", "setup": "", "cpu_time_s": 500,
            "cores": 1, "max_cores": 1, "memory_mb": 1, "gpus": 0, "sites": [], "banned_sites": [],
            "queues": [], "platforms": [], "pilot_types": [], "submit_pools": [],
            "middlewares": [], "tags": [], "job_type": "", "requirements": "",
            "disk_mb": 0, "limits": [],
        }
        for n in range(4991, 5011)
    ]  # fmt: skip

    steps = explain(taskqueues.MAKE_TASK_QUEUES, [json.dumps(needs)])

    assert not scanned_whole(steps, "taskqueues_taskqueue")
    upsert = written(steps, "taskqueues_taskqueue")
    [index] = upsert["Conflict Arbiter Indexes"]
    assert "key" in index
    assert (upsert["Conflicting Tuples"], upsert["Tuples Inserted"]) == (10, 10)


def test_jobs_join_by_their_ids(waiting_jobs: None) -> None:
    task_queue_id = TaskQueue.objects.values_list("pk", flat=True)[0]
    ids = list(range(49_901, 50_101))

    steps = explain(taskqueues.JOIN_TASK_QUEUES, [ids, [task_queue_id] * 200, [1] * 200, "[]"])

    assert not scanned_whole(steps, "taskqueues_waitingjob")
    upsert = written(steps, "taskqueues_waitingjob")
    assert upsert["Conflict Arbiter Indexes"] == ["taskqueues_waitingjob_pkey"]
    assert (upsert["Conflicting Tuples"], upsert["Tuples Inserted"]) == (100, 100)


def test_empty_task_queues_are_found_by_the_count_and_without_the_jobs(waiting_jobs: None) -> None:
    """All TaskQueues are read, once a minute: there are as many as different needs."""
    steps = explain(taskqueues.FIND_EMPTY, None)

    assert not scanned_whole(steps, "taskqueues_tally")
    assert rows_read(steps, "taskqueues_tally") == 5000
    assert indexes(steps) == {"tally_by_queue"}
    assert rows_read(steps, "taskqueues_waitingjob") == 0


def test_tickets_are_issued_in_one_pass_over_task_queues_and_their_count(
    waiting_jobs: None, charlie: User
) -> None:
    """Whole tables are right here: the planner may not know yet how many TaskQueues are new.

    With an index for each it would compare all with all, once it is wrong.
    """
    TaskQueue.objects.filter(pk__in=TaskQueue.objects.order_by("pk")[:10]).update(owner=charlie)
    new = list(TaskQueue.objects.filter(owner=charlie).values_list("pk", flat=True))
    run("DELETE FROM taskqueues_ticket WHERE task_queue_id = ANY(%s)", [new])

    run(taskqueues.FORBID_NESTED_LOOPS)
    steps = explain(
        taskqueues.ISSUE_TICKETS,
        {
            "groups": [""],
            "owners": [charlie.pk],
            "parts": [0.5],
            "sharing": [],
            "weights": [1.0] * 10,
            "least": 1e-9,
            "new": new,
        },
    )

    assert not [step for step in steps if step["Node Type"] == "Nested Loop"]
    assert rows_read(steps, "taskqueues_taskqueue") <= 5000
    assert rows_read(steps, "taskqueues_tally") <= 5000
    assert rows_read(steps, "taskqueues_waitingjob") == 0
    assert written(steps, "taskqueues_ticket")["Actual Rows"] == 0
    assert Ticket.objects.filter(task_queue__in=new).count() == 10


def test_a_selection_is_frozen_by_the_index_of_its_filter(jobs: None, alice: User) -> None:
    run("UPDATE jobs_job SET state = 'held', state_reason = 'x' WHERE topic_key = 7")
    analyze("jobs_job")
    operation = BulkOperation.objects.create(
        owner=alice, list_name="jobs", action="release", snapshot_at=datetime.now(UTC)
    )
    rows = Job.objects.filter(state="held").order_by().values("pk")
    text, parameters = rows.query.sql_with_params()

    steps = explain(bulk.FREEZE_SELECTION.format(rows=text), [operation.pk, *parameters, 100_001])

    assert not scanned_whole(steps, "jobs_job")
    assert rows_read(steps, "jobs_job") == 200
    assert operation.items.count() == 200

"""The plans of the statements written by hand, on enough rows that a wrong plan would hurt."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from matching.task_queues.resources import Resource
from matching.task_queues.weighted_draws import Law
from tests.wms.plans.query_plans import analyze, dag_of, explain, rows_read, run, scanned_whole
from wms.core.actors import Actor
from wms.core.models import User
from wms.core.statemachine import OwnValues
from wms.dags.engine import transitions
from wms.history import sql as history
from wms.history.models import Series
from wms.taskqueues import waiting
from wms.taskqueues.draws import draw
from wms.taskqueues.draws import sql as draws
from wms.taskqueues.models import TaskQueue

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

NODE = Resource("site-a", cpu_time_s=300_000, cores=1, memory_mb=2000)


def test_a_draw_reads_a_few_task_queues_whatever_their_number(waiting_jobs: None) -> None:
    for resource in (NODE, replace(NODE, refused_owners=("nobody",), refused_groups=("g",))):
        steps = explain(*draw.explained("sample", resource, 500))

        for table in ("taskqueues_taskqueue", "taskqueues_ticket"):
            assert not scanned_whole(steps, table)
            # Each point fits with the chance of a half: not one of 2^50 draws takes fifty.
            assert rows_read(steps, table) <= 55


def test_a_job_is_taken_without_looking_at_those_behind_the_oldest_ten(
    waiting_jobs: None,
) -> None:
    task_queue_id = TaskQueue.objects.values_list("pk", flat=True).first()

    steps = explain(
        draws.TAKE_BY[Law.EXPONENTIAL],
        {"task_queue": task_queue_id, **waiting.ANYONE.parameters()},
    )

    assert not scanned_whole(steps, "taskqueues_waitingjob")
    assert not scanned_whole(steps, "taskqueues_tally")
    # The oldest ten, the one that is locked, the one that is deleted.
    assert rows_read(steps, "taskqueues_waitingjob") <= 22


def test_a_host_is_given_a_job_that_has_not_failed_there_by_the_same_few_rows(
    waiting_jobs: None,
) -> None:
    task_queue_id = TaskQueue.objects.values_list("pk", flat=True).first()
    run("UPDATE taskqueues_waitingjob SET avoided_hosts = '{wn1}' WHERE job_id %% 50000 < 5", [])
    analyze("taskqueues_waitingjob")
    taker = waiting.ClaimingHost("wn1", patience_s=900)
    law = draws.TAKE_BY[Law.EXPONENTIAL]

    steps = explain(law, {"task_queue": task_queue_id, **taker.parameters()})
    asked = explain(draws.HAS_FAILED_AT, {"host": "wn1"})

    assert not scanned_whole(steps, "taskqueues_waitingjob")
    assert rows_read(steps, "taskqueues_waitingjob") <= 22
    assert not scanned_whole(asked, "taskqueues_waitingjob")
    assert rows_read(asked, "taskqueues_waitingjob") <= 10


def test_task_queues_of_one_owner_and_with_a_tag_are_found_by_their_indexes(
    waiting_jobs: None,
) -> None:
    for resource in (
        replace(NODE, owner="nobody", owner_groups=("g",)),
        replace(NODE, tags=("gpu",), required_tags=("gpu",)),
    ):
        steps = explain(*draw.explained("scan", resource, 500))

        assert not scanned_whole(steps, "taskqueues_taskqueue")


def _last_nodes(count: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM dags_node ORDER BY ordinal DESC LIMIT %s", [count])
        return [row[0] for row in cursor.fetchall()]


def test_moving_nodes_is_planned_for_many_though_few_had_their_state_when_analysed(
    alice: User,
) -> None:
    """Where a single one is expected, a plan that compares each node with each costs the same."""
    dag = dag_of(alice, 20_000)
    run("UPDATE dags_node SET state = 'done' WHERE ordinal < 9000")
    analyze("dags_node")
    ids = _last_nodes(1000)
    run("UPDATE dags_node SET state = 'ready', ready_rank = 1 WHERE id = ANY(%s)", [ids])
    with CaptureQueriesContext(connection) as queries, transaction.atomic():
        transitions.move(
            "submit",
            ids,
            dag_id=dag.pk,
            actor=Actor.system("test"),
            own_values=OwnValues("job", ids, fact="job"),
        )
        transaction.set_rollback(True)
    [statement] = [each["sql"] for each in queries if "WITH moved" in each["sql"]]

    steps = explain(statement, None)

    [join] = [step for step in steps if "Join" in step["Node Type"] or "Loop" in step["Node Type"]]
    assert join["Actual Rows"] == 1000
    assert join["Plan Rows"] > 100


def test_storing_a_sample_touches_one_bin_of_each_series() -> None:
    series = Series.objects.bulk_create([Series(name=f"s{n}") for n in range(100)])
    run(
        """
        INSERT INTO history_bin
            (series_id, archive, slot, start, count, total, minimum, maximum, last)
        SELECT series.id, 0, slot, now() - interval '1 day', 1, 1, 1, 1, 1
        FROM history_series AS series, generate_series(0, 999) AS slot
        """
    )
    analyze("history_bin")

    steps = explain(
        history.STORE_SAMPLES,
        {
            "archive": 0,
            "slot": 7,
            "start": "2026-11-20T12:00:00Z",
            "at": "2026-11-20T12:00:30Z",
            "series": [each.pk for each in series],
            "values": [1.0] * len(series),
        },
    )

    assert not scanned_whole(steps, "history_bin")
    (insert,) = [step for step in steps if step["Node Type"] == "ModifyTable"]
    assert insert["Conflicting Tuples"] == 100


def test_what_happened_lately_is_counted_without_reading_all_events(alice: User) -> None:
    run(
        """
        INSERT INTO jobs_jobevent
            (job_id, event, from_state, to_state, actor, reason, facts, created_at)
        SELECT n / 3, (ARRAY['enqueue', 'start', 'complete'])[1 + n % 3], '', '', 'test', '', '{}',
            now() - (100000 - n) * interval '1 second'
        FROM generate_series(1, 100000) AS n
        """
    )
    analyze("jobs_jobevent")
    now = datetime.now(UTC)
    span = {"since": now - timedelta(minutes=2), "until": now}

    events = explain(history.COUNT_EVENTS, span | {"events": ["start", "complete"]})
    waited = explain(history.COUNT_WAITED, span | {"ratio": 1.1})

    for steps in (events, waited):
        assert not scanned_whole(steps, "jobs_jobevent")
    # A range of the index is 32 pages of some sixty events.
    assert rows_read(events, "jobs_jobevent") < 5000

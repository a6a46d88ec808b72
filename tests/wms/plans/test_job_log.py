"""The log of jobs is read by its jobs and its times, wherever its events are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.wms.plans.query_plans import explain, rows_read, run, scanned_whole, settle
from wms.accounting.models import AccountingGroup, Frontend
from wms.core.models import User
from wms.dags.reading.dag_jobs import job_events_of
from wms.history import sql as history
from wms.jobs.models import Job, LoggedJobEvent, Workspace
from wms.jobs.selectors import events_of_job

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

_TABLES = ("jobs_jobevent", "jobs_job", "jobs_attempt")


@pytest.fixture(scope="module")
def lives(owner: User) -> None:
    """20,000 jobs of 2,000 DAGs, one each second until now, whose four events stand in each way."""
    workspace = Workspace.objects.create(owner=owner)
    run(
        """
        WITH job AS (
            INSERT INTO jobs_job
                (name, owner_id, workspace_id, state, state_reason, description_id, max_attempts,
                 attempt_number, topic, topic_key, created_at, enqueue_event, submitted_by)
            SELECT 'a', %s, %s, 'done', '', 0, 1, 1, 'dag-jobs', n / 10,
                now() - (20000 - n) * interval '1 second', 4 * n, 'alice'
            FROM generate_series(1, 20000) AS n
            RETURNING id, created_at, enqueue_event
        ), attempt AS (
            INSERT INTO jobs_attempt
                (job_id, number, pilot_id, site_name, host, job_type, outcome, reason,
                 matched_at, started_at, actor, match_event, start_event)
            SELECT id, 1, 1, 'site-a', 'wn1', '', 'done', '', created_at, created_at, 'alice',
                enqueue_event + 1, enqueue_event + 2
            FROM job
        )
        INSERT INTO jobs_jobevent
            (id, job_id, event, from_state, to_state, actor, reason, facts, created_at)
        SELECT enqueue_event + 3, id, 'complete', 'r', 'd', 'alice', '', '{}', created_at FROM job
        """,
        [owner.pk, workspace.pk],
    )
    settle(*_TABLES)


def test_the_log_of_a_job_is_read_without_that_of_others(lives: None) -> None:
    job = Job.objects.order_by("pk")[10_000]

    steps = explain(*events_of_job(job).query.sql_with_params())

    assert [event.event for event in events_of_job(job)] == [
        "complete",
        "start",
        "match",
        "enqueue",
    ]
    for table in _TABLES:
        assert not scanned_whole(steps, table)
        assert rows_read(steps, table) <= 2


def test_the_log_of_a_dag_is_read_without_that_of_others(lives: None) -> None:
    events = job_events_of(1000).order_by("created_at", "pk").values_list("event", "job__process")

    steps = explain(*events.query.sql_with_params())

    assert len(events) == 40
    for table in _TABLES:
        assert not scanned_whole(steps, table)
        assert rows_read(steps, table) <= 40


def test_what_happened_lately_is_counted_without_reading_the_whole_log(lives: None) -> None:
    now = LoggedJobEvent.objects.latest("created_at").created_at + timedelta(seconds=1)
    span = {"since": now - timedelta(minutes=2), "until": now}
    assert now <= datetime.now(UTC) + timedelta(seconds=1)

    events = explain(history.COUNT_EVENTS, span | {"events": ["enqueue", "start", "complete"]})
    waited = explain(history.COUNT_WAITED, span | {"ratio": 1.1})
    frontend = Frontend.objects.create(name="f")
    AccountingGroup.objects.create(name="g", frontend=frontend)
    asked = span | {"events": ["start", "complete", "fail"], "frontends": [0, frontend.pk]}
    of_frontends = explain(history.COUNT_EVENTS_OF_FRONTENDS, asked)

    for steps in (events, waited, of_frontends):
        for table in _TABLES:
            assert not scanned_whole(steps, table)
            # A range of an index by time is 32 pages of some sixty rows.
            assert rows_read(steps, table) < 6000

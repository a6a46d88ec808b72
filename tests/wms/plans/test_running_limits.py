"""The plan by which running limits count, among very many attempts that have ended."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.wms.dags.driving import NOW
from tests.wms.plans.query_plans import analyze, explain, rows_read, run, scanned_whole, settle
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs import sql
from wms.jobs.limits import ClaimLimits, save_limit
from wms.jobs.models import RunningLimit, Workspace
from wms.sites.models import Site

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture(scope="module")
def attempts(owner: User) -> None:
    """2,000 open attempts at twenty sites, and 38,000 that have ended."""
    workspace = Workspace.objects.create(owner=owner)
    run(
        """
        WITH job AS (
            INSERT INTO jobs_job
                (name, owner_id, workspace_id, state, state_reason, description_id,
                 max_attempts, attempt_number, topic, topic_key)
            SELECT 'a', %s, %s, 'running', '', 0, 20, 20, '', 0
            FROM generate_series(1, 2000)
            RETURNING id
        )
        INSERT INTO jobs_attempt
            (job_id, number, pilot_id, site_name, host, job_type, outcome, reason)
        SELECT id, n, id, 'site-' || id %% 20, '', 'User', CASE n WHEN 20 THEN '' ELSE 'lost' END,
               ''
        FROM job CROSS JOIN generate_series(1, 20) AS n
        """,
        [owner.pk, workspace.pk],
    )
    settle("jobs_attempt")


def test_a_limit_reads_what_is_open_of_its_kind_at_its_site_and_nothing_else(attempts) -> None:
    site = Site.objects.create(name="site-1")
    save_limit(RunningLimit(site=site, job_type="User", maximum=5000), actor=Actor.system("test"))

    with CaptureQueriesContext(connection) as queries:
        assert ClaimLimits.at("site-1", NOW).reached() == ()
    (count,) = [query["sql"] for query in queries]
    steps = explain(count.replace("%", "%%"), [])

    assert not scanned_whole(steps, "jobs_attempt")
    assert rows_read(steps, "jobs_attempt") == 100


def test_a_limit_counts_no_further_than_its_maximum(attempts) -> None:
    save_limit(RunningLimit(maximum=7), actor=Actor.system("test"))

    with CaptureQueriesContext(connection) as queries:
        assert len(ClaimLimits.at("site-1", NOW).reached()) == 1
    steps = explain(queries[0]["sql"].replace("%", "%%"), [])

    assert rows_read(steps, "jobs_attempt") == 7


def test_the_use_of_a_concurrency_limit_reads_the_open_attempts_that_use_it(attempts) -> None:
    run("UPDATE jobs_attempt SET limits = '{\"db\": 2}' WHERE job_id % 40 = 0 AND number > 10")
    analyze("jobs_attempt")

    steps = explain(sql.USE_OF_LIMITS, [["db", "other"]])

    assert not scanned_whole(steps, "jobs_attempt")
    assert rows_read(steps, "jobs_attempt") <= 100


def test_limits_of_waiting_jobs_are_read_from_those_that_use_any(waiting_jobs) -> None:
    run("UPDATE taskqueues_taskqueue SET limits = '{db:2}' WHERE id % 500 = 0")
    analyze("taskqueues_taskqueue")

    steps = explain(sql.LIMITS_OF_WAITING_JOBS, [])

    assert not scanned_whole(steps, "taskqueues_taskqueue")

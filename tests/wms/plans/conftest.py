"""Fixtures of many rows for tests of query plans, so that a wrong plan would hurt.

Waiting jobs, a wide DAG, jobs that are done, idle DAGs, bins of the history. They are made once for
all tests of a module, and belong to a user of their own.
"""

from __future__ import annotations

import pytest

from tests.wms.plans.query_plans import dag_of, run, settle
from wms.core.models import User
from wms.dags.models import Dag
from wms.history.models import Series
from wms.jobs.models import Workspace
from wms.taskqueues import priorities


@pytest.fixture(scope="module")
def owner(module_rows: None) -> User:
    """Owner of the rows that the tests of a module share."""
    return User.objects.create_user("owner")


@pytest.fixture(scope="module")
def waiting_jobs(owner: User) -> None:
    """50,000 jobs in 5,000 TaskQueues of one segment, half of which are for another site."""
    run(
        """
        INSERT INTO taskqueues_taskqueue (key, owner_id, owner_group, cpu_time_s, cores, memory_mb,
                                          sites, banned_sites, platforms, tags)
        SELECT n::text, %s, '', 500, 1, n %% 2000,
               CASE WHEN n %% 2 = 0 THEN '{}' ELSE '{site-b}' END::varchar[], '{}', '{}', '{}'
        FROM generate_series(1, 5000) AS n
        """,
        [owner.pk],
    )
    run(
        """
        INSERT INTO taskqueues_waitingjob (job_id, task_queue_id)
        SELECT n, (SELECT min(id) FROM taskqueues_taskqueue) + n % 5000
        FROM generate_series(1, 50000) AS n
        """
    )
    run(
        "INSERT INTO taskqueues_tally (task_queue_id, priority, jobs)"
        " SELECT task_queue_id, 1, count(*) FROM taskqueues_waitingjob GROUP BY task_queue_id"
    )
    run(
        "INSERT INTO taskqueues_ticket (task_queue_id, cpu_time_s, priority)"
        " SELECT id, cpu_time_s, 1 FROM taskqueues_taskqueue"
    )
    priorities.recompute()
    settle(*(f"taskqueues_{each}" for each in ("taskqueue", "waitingjob", "tally", "ticket")))


@pytest.fixture(scope="module")
def _wide_dag(owner: User) -> int:
    dag = dag_of(owner, 60_001)
    run(
        """
        INSERT INTO dags_edge (parent_id, child_id)
        SELECT parent.id, child.id
        FROM dags_node AS child
        JOIN dags_node AS parent
          ON parent.ordinal = CASE WHEN child.ordinal <= 30001 THEN 1 ELSE child.ordinal - 30000 END
        WHERE child.ordinal > 1
        """
    )
    settle("dags_edge")
    return dag.pk


@pytest.fixture
def wide_dag(_wide_dag: int) -> Dag:
    """A root with 30,000 children, each of which has one child: 60,001 nodes."""
    return Dag.objects.get(pk=_wide_dag)


@pytest.fixture(scope="module")
def jobs(owner: User) -> None:
    """20,000 jobs that are done, with two events each."""
    workspace = Workspace.objects.create(owner=owner)
    run(
        """
        INSERT INTO jobs_job
            (name, owner_id, workspace_id, state, state_reason, description_id,
             max_attempts, attempt_number, topic, topic_key)
        SELECT 'a', %s, %s, 'done', '', 0, 1, 1, 'dag-jobs', n %% 100
        FROM generate_series(1, 20000) AS n
        """,
        [owner.pk, workspace.pk],
    )
    run(
        """
        INSERT INTO jobs_jobevent
            (job_id, event, from_state, to_state, actor, reason, facts, created_at)
        SELECT id, unnest(ARRAY['start', 'complete']), '', '', 'test', '', '{}', now()
        FROM jobs_job
        """
    )
    settle("jobs_job", "jobs_jobevent")


@pytest.fixture(scope="module")
def idle_dags(owner: User) -> list[int]:
    """20,000 idle DAGs; the ids of the first hundred."""
    run(
        """
        WITH made AS (
            INSERT INTO jobs_workspace (owner_id)
            SELECT %s FROM generate_series(1, 20000) RETURNING id, owner_id
        )
        INSERT INTO dags_dag (name, owner_id, workspace_id, state, state_reason, ad_attributes,
            environment_template, match_attributes, environment, concurrency_limits,
            rematch_expression, unmatched_reason, node_count, done_count, failed_count,
            futile_count, submitted_count)
        SELECT 'd', owner_id, id, 'idle', '', '{}', '', '{}', '{}', '{}', '', '', 1, 0, 0, 0, 0
        FROM made
        """,
        [owner.pk],
    )
    settle("dags_dag")
    return list(Dag.objects.order_by("pk").values_list("pk", flat=True)[:100])


@pytest.fixture(scope="module")
def rings(module_rows: None) -> list[int]:
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
    settle("history_series", "history_bin")
    return [each.pk for each in series]

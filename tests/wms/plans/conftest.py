"""Many rows, so that a wrong plan would hurt."""

from __future__ import annotations

import pytest

from tests.wms.plans.explaining import dag_of, run
from wms.core.models import User
from wms.dags.models import Dag
from wms.taskqueues import priorities


@pytest.fixture
def waiting_jobs(alice: User) -> None:
    """50,000 jobs in 5,000 TaskQueues of one segment, half of which are for another site."""
    run(
        """
        INSERT INTO taskqueues_taskqueue (key, owner_id, owner_group, cpu_time_s, cores, memory_mb,
                                          sites, banned_sites, platforms, tags)
        SELECT n::text, %s, '', 500, 1, n %% 2000,
               CASE WHEN n %% 2 = 0 THEN '{}' ELSE '{site-b}' END::varchar[], '{}', '{}', '{}'
        FROM generate_series(1, 5000) AS n
        """,
        [alice.pk],
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
    for table in ("taskqueue", "waitingjob", "tally", "ticket"):
        run(f"ANALYZE taskqueues_{table}")


@pytest.fixture
def wide_dag(alice: User) -> Dag:
    """A root with 30,000 children, each of which has one child: 60,001 nodes."""
    dag = dag_of(alice, 60_001)
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
    run("ANALYZE dags_edge")
    return dag

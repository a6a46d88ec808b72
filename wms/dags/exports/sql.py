"""SQL of exports of DAGs: attempts in earlier runs, and states of nodes with counts of jobs."""

from __future__ import annotations

from collections.abc import Iterable

from wms.core.database.state_field import stored_state

# Every node that was begun has had one attempt, and one more with each retry. By hand: a walk
# from run to run that the ORM cannot express. The runs are found by the primary key, their events
# by `nodeevent_by_dag`.
COUNT_EARLIER_ATTEMPTS = f"""
WITH RECURSIVE earlier(id) AS (
    SELECT previous_run_id FROM dags_dag WHERE id = %s AND previous_run_id IS NOT NULL
    UNION
    SELECT dag.previous_run_id FROM earlier JOIN dags_dag AS dag ON dag.id = earlier.id
    WHERE dag.previous_run_id IS NOT NULL
)
SELECT count(*) FILTER (WHERE event = 'retry')
       + count(DISTINCT node_id) FILTER (
           WHERE from_state IN ('ready', '{stored_state("ready")}') AND event <> 'give up')
FROM dags_nodeevent WHERE dag_id IN (SELECT id FROM earlier)
"""

# One statement, so that the counts at the top agree with the nodes below them. What was under way
# when the DAG ended has failed; DAGMan shows it so. By hand, because the ORM would look for a
# node's jobs once for each of their counts. The nodes are found by `node_by_dag_and_place`, their
# jobs by the primary key and `job_by_cluster`.
READ_NODE_STATUSES = """
WITH node AS (
    SELECT id, ordinal, name, state, state_reason, retry_number, job_id,
           CASE WHEN %(is_over)s AND state = ANY(%(in_flight)s)
                THEN 'failed' WHEN state = 'skipped' THEN 'futile' ELSE state END AS shown
    FROM dags_node WHERE dag_id = %(dag)s AND kind <> 'service'
)
SELECT node.name, node.state, node.shown, node.state_reason, node.retry_number,
       coalesce(job.queued, 0), coalesce(job.held, 0), coalesce(job.idle, 0),
       count(*) OVER (), {counts}, sum(job.held) OVER (), sum(job.idle) OVER ()
FROM node
LEFT JOIN LATERAL (
    SELECT count(*) AS queued, count(*) FILTER (WHERE state = 'held') AS held,
           count(*) FILTER (WHERE state IN ('received', 'waiting', 'matched', 'held')) AS idle
    FROM jobs_job
    WHERE node.shown = 'submitted' AND state NOT IN ('done', 'failed', 'killed')
      AND (jobs_job.id = node.job_id OR (cluster_id = node.job_id AND cluster_id <> id))
) AS job ON true
ORDER BY node.ordinal
"""


def read_node_statuses(counted: Iterable[str]) -> str:
    """`READ_NODE_STATUSES` with the numbers of nodes shown in these states, in this order."""
    counts = (f"count(*) FILTER (WHERE shown = '{state}') OVER ()" for state in counted)
    return READ_NODE_STATUSES.format(counts=", ".join(counts))

"""SQL of the engine: inbox entries, job events, DAGs' counters, parents left, futile nodes."""

from __future__ import annotations

from collections.abc import Sequence

from wms.core.database.actor_field import loop_name_in_sql
from wms.core.sql import events_written

# By hand, because the ORM cannot tell what it has removed. The entries are found by
# `inbox_topic_key`.
TAKE_ENTRIES = """
DELETE FROM core_inboxentry
WHERE id IN (
    SELECT id FROM core_inboxentry WHERE topic = ANY(%s) AND key = %s ORDER BY id LIMIT %s
)
RETURNING id, kind, subject_id
"""

# The first entries of each of these DAGs, which nobody else can take: the rows of the DAGs are
# locked. By hand, because the ORM has no LATERAL. The entries are found by `inbox_topic_key`.
READ_ENTRIES = """
SELECT entry.id, dag.id, entry.kind, entry.subject_id
FROM unnest(%(dags)s::bigint[]) AS dag(id) CROSS JOIN LATERAL (
    SELECT id, kind, subject_id FROM core_inboxentry
    WHERE topic = ANY(%(topics)s) AND key = dag.id ORDER BY id LIMIT %(most)s
) AS entry
ORDER BY entry.id
"""

# The counters of a round's DAGs, which follow the moves of their nodes. By hand, because the ORM
# cannot add another number to each row. The DAGs are found by the primary key.
ADD_COUNTS = """
UPDATE dags_dag AS dag
SET round_number = step.round_number,
    {steps},
    category_counts = coalesce(step.category_counts, dag.category_counts)
FROM jsonb_to_recordset(%(steps)s::jsonb) AS step(
    id bigint, round_number integer, {columns}, category_counts jsonb)
WHERE dag.id = step.id
"""


def add_counts(counters: Sequence[str]) -> str:
    """`ADD_COUNTS` for these columns."""
    return ADD_COUNTS.format(
        steps=", ".join(f"{name} = dag.{name} + step.{name}" for name in counters),
        columns=", ".join(f"{name} integer" for name in counters),
    )


# One statement for thousands of events, with the plain nodes that they concern and the DAGs that
# submitted the jobs. By hand because the ORM cannot join a node of that DAG only, and takes longer
# to write the list than to run it. OFFSET keeps the planner, where it does not know yet how large
# the tables are, to the index of the nodes' jobs; events and jobs are found by their primary keys.
READ_JOB_EVENTS = f"""
SELECT event.event,
       CASE WHEN event.event = 'kill'
            THEN concat('the job was killed by ', {loop_name_in_sql("event.actor")}, ': ',
                event.reason)
            ELSE event.reason END,
       CASE WHEN node.id IS NULL THEN event.facts END, event.job_id,
       CASE WHEN job.cluster_id = 0 THEN job.id ELSE job.cluster_id END, node.id,
       node.retry_number < node.max_retries, job.topic_key
FROM jobs_jobevent AS event
JOIN jobs_job AS job ON job.id = event.job_id
LEFT JOIN LATERAL (
    SELECT * FROM dags_node WHERE dags_node.job_id = event.job_id OFFSET 0
) AS node ON node.dag_id = job.topic_key
    AND node.state = 'submitted' AND node.is_plain
WHERE event.id = ANY(%(ids)s::bigint[])
ORDER BY event.id
"""

# For every child of these parents: that many parents fewer to wait for. A child that waits for
# none any more is ready, in the same statement; its rank, which no other node of its DAG has had,
# tells that it was this statement which made it so. By hand, because the ORM cannot subtract a
# count per row. The arcs are found by `edge_unique`, the children by the primary key.
COUNT_DOWN = """
WITH dag AS (
    SELECT * FROM unnest(%(dags)s::bigint[], %(ranks)s::bigint[]) AS given(id, rank)
), finished AS (
    SELECT child_id, count(*) AS parents
    FROM dags_edge WHERE parent_id = ANY(%(parents)s::bigint[]) AND NOT is_joined{weak}
    GROUP BY child_id
), counted AS (
    UPDATE dags_node AS node
    SET unfinished_parents = node.unfinished_parents - finished.parents,
        state = CASE WHEN {is_next} THEN %(target)s ELSE node.state END,
        state_since = CASE WHEN {is_next} THEN statement_timestamp() ELSE node.state_since END,
        ready_rank = CASE WHEN {is_next} THEN dag.rank ELSE node.ready_rank END
    FROM finished, dag
    WHERE node.id = finished.child_id AND node.dag_id = dag.id
    RETURNING node.id, node.dag_id, node.kind, node.features IS NOT NULL AS is_special,
        node.state = %(target)s AND node.ready_rank = dag.rank AS is_next
), released AS (
    SELECT id, dag_id, %(source)s AS was FROM counted WHERE is_next
), {written}
SELECT id, dag_id, kind, is_special FROM counted WHERE is_next
"""
_IS_NEXT = "node.state = %(source)s AND node.unfinished_parents = finished.parents"


def count_down(*, only_weak: bool = False) -> str:
    """`COUNT_DOWN`; with `only_weak` for the children that wait for the mere end."""
    return COUNT_DOWN.format(
        weak=" AND is_weak" if only_weak else "",
        is_next=_IS_NEXT,
        written=events_written(
            events="dags_nodeevent", subject="node_id", rows="released", parent="dag_id"
        ),
    )


# All that waits below these nodes, however deep. A node that will never run lets its children
# over weak arcs run as little as the others; one that is done or under way stops the walk, and so
# does one with a join, on which `wms.dags.joins.deciding` decides. By hand: a walk that the ORM
# cannot express. The arcs are found by `edge_unique`, the nodes by the primary key.
FIND_FUTILE = """
WITH RECURSIVE below(id) AS (
    SELECT edge.child_id FROM dags_edge AS edge
    JOIN dags_node AS child ON child.id = edge.child_id
    JOIN dags_node AS parent ON parent.id = edge.parent_id
    WHERE edge.parent_id = ANY(%(failed)s) AND child.state = 'waiting' AND NOT edge.is_joined
        AND (NOT edge.is_weak OR parent.state = 'futile')
    UNION
    SELECT edge.child_id FROM below JOIN dags_edge AS edge ON edge.parent_id = below.id
    JOIN dags_node AS child ON child.id = edge.child_id
    WHERE child.state = 'waiting' AND NOT edge.is_joined
)
SELECT id FROM below
"""

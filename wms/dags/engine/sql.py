"""What the engine sends to PostgreSQL by hand: its inbox, and moving nodes by the thousands."""

from __future__ import annotations

from collections.abc import Sequence

# By hand, because the ORM cannot tell what it has removed. The entries are found by
# `inbox_topic_key`.
TAKE_ENTRIES = """
DELETE FROM core_inboxentry
WHERE id IN (
    SELECT id FROM core_inboxentry WHERE topic = ANY(%s) AND key = %s ORDER BY id LIMIT %s
)
RETURNING id, kind, subject_id
"""

# One statement for thousands of events, with the plain nodes that they concern. By hand because
# the ORM cannot join a node of this DAG only, and takes longer to write the list than to run it.
# OFFSET keeps the planner, where it does not know yet how large the tables are, to the index of
# the nodes' jobs; events and jobs are found by their primary keys.
READ_JOB_EVENTS = """
SELECT event.event,
       CASE WHEN event.event = 'kill'
            THEN concat('the job was killed by ', event.actor, ': ', event.reason)
            ELSE event.reason END,
       CASE WHEN node.id IS NULL THEN event.facts END, event.job_id,
       CASE WHEN job.cluster_id = 0 THEN job.id ELSE job.cluster_id END, node.id,
       node.retry_number < node.max_retries
FROM jobs_jobevent AS event
JOIN jobs_job AS job ON job.id = event.job_id
LEFT JOIN LATERAL (
    SELECT * FROM dags_node WHERE dags_node.job_id = event.job_id OFFSET 0
) AS node ON node.dag_id = %(dag)s
    AND node.state = 'submitted' AND node.is_plain
WHERE event.id = ANY(%(ids)s::bigint[])
ORDER BY event.id
"""

# By hand, because the ORM needs three statements for it. The nodes are found by the primary key,
# which is that of `NodeWork` as well. `was` is told by the statement where a node can come from
# one state only; else by its old row.
MOVE_NODES = """
WITH moved AS (
    UPDATE dags_node AS node
    SET state = %(target)s, state_since = statement_timestamp(), state_reason = %(reason)s,
        state_cause = %(cause)s{changes}
    FROM {given}
    WHERE node.id = given.id AND node.dag_id = ANY(%(dags)s) AND {from_state}
    RETURNING node.id, node.dag_id, {was} AS was, node.kind, node.category{returned}
), logged AS (
    INSERT INTO dags_nodeevent
        (dag_id, node_id, event, from_state, to_state, actor, reason, cause, facts, created_at)
    SELECT dag_id, id, %(event)s, was, %(target)s, %(actor)s, %(reason)s, %(cause)s, {facts},
           statement_timestamp()
    FROM moved
    {returning}
){announced}{forgotten}
SELECT id, dag_id, was, kind, category FROM moved
"""
# What was under way has ended with it.
_FORGOTTEN = """, forgotten AS (
    DELETE FROM dags_nodework AS work USING moved WHERE work.node_id = moved.id
)"""
# Who looks for the causes of failures hears of the events, in the same statement.
_ANNOUNCED = """, announced AS (
    INSERT INTO core_inboxentry (topic, key, kind, subject_id)
    SELECT %(topic)s, 0, 'node event', id FROM logged
)"""
_IDS = "unnest(%(ids)s::bigint[]) AS given(id)"
_IDS_AND_VALUES = "unnest(%(ids)s::bigint[], %(values)s::{type}[]) AS given(id, value)"
_OLD = " JOIN dags_node AS old ON old.id = given.id"
# As a query, so that the planner does not look the state up in what it knows of the table: a state
# that few nodes had when it was analysed would let it compare each node with each of those given.
_FROM_ONE = "node.state = (SELECT %(source)s::varchar)"
#: What a node's `retry_number` becomes with its next attempt.
NEXT_RETRY = "node.retry_number + 1"


def move_nodes(
    sets: Sequence[str],
    *,
    value_type: str = "",
    fact: str = "",
    is_from_one: bool,
    is_announced: bool,
    forgets: bool,
) -> str:
    """`MOVE_NODES` with these assignments beside those of the state.

    With `value_type` each node is given a value of this SQL type, `given.value`, of which its event
    tells by the name `fact`.
    """
    given = _IDS_AND_VALUES.format(type=value_type) if value_type else _IDS
    return MOVE_NODES.format(
        changes="".join(f", {text}" for text in sets),
        given=given if is_from_one else given + _OLD,
        from_state=_FROM_ONE if is_from_one else "old.state = ANY(%(sources)s)",
        was="%(source)s" if is_from_one else "old.state",
        returned=", given.value" if fact else "",
        facts=f"jsonb_build_object('{fact}', value)" if fact else "%(facts)s",
        returning="RETURNING id" if is_announced else "",
        announced=_ANNOUNCED if is_announced else "",
        forgotten=_FORGOTTEN if forgets else "",
    )


# For every child of these parents: that many parents fewer to wait for. A child that waits for
# none any more is ready, in the same statement; its rank, which no other node has had, tells that
# it was this statement which made it so. By hand, because the ORM cannot subtract a count per
# row. The arcs are found by `edge_unique`, the children by the primary key.
COUNT_DOWN = """
WITH finished AS (
    SELECT child_id, count(*) AS parents
    FROM dags_edge WHERE parent_id = ANY(%(parents)s::bigint[]){weak}
    GROUP BY child_id
), counted AS (
    UPDATE dags_node AS node
    SET unfinished_parents = node.unfinished_parents - finished.parents,
        state = CASE WHEN {is_next} THEN 'ready' ELSE node.state END,
        state_since = CASE WHEN {is_next} THEN statement_timestamp() ELSE node.state_since END,
        ready_rank = CASE WHEN {is_next} THEN %(rank)s ELSE node.ready_rank END
    FROM finished
    WHERE node.id = finished.child_id
    RETURNING node.id, node.kind, node.features IS NOT NULL AS is_special,
        node.state = 'ready' AND node.ready_rank = %(rank)s AS is_next
), logged AS (
    INSERT INTO dags_nodeevent
        (dag_id, node_id, event, from_state, to_state, actor, reason, facts, created_at)
    SELECT %(dag)s, id, 'make ready', 'waiting', 'ready', %(actor)s, '', '{{}}',
           statement_timestamp()
    FROM counted WHERE is_next
)
SELECT id, kind, is_special FROM counted WHERE is_next
"""
_IS_NEXT = "node.state = 'waiting' AND node.unfinished_parents = finished.parents"


def count_down(*, only_weak: bool = False) -> str:
    """`COUNT_DOWN`; with `only_weak` for the children that wait for the mere end."""
    return COUNT_DOWN.format(weak=" AND is_weak" if only_weak else "", is_next=_IS_NEXT)


# All that waits below these nodes, however deep. A node that will never run lets its children
# over weak arcs run as little as the others; one that is done or under way stops the walk. By
# hand: a walk that the ORM cannot express. The arcs are found by `edge_unique`, the nodes by the
# primary key.
FIND_FUTILE = """
WITH RECURSIVE below(id) AS (
    SELECT edge.child_id FROM dags_edge AS edge
    JOIN dags_node AS child ON child.id = edge.child_id
    JOIN dags_node AS parent ON parent.id = edge.parent_id
    WHERE edge.parent_id = ANY(%(failed)s) AND child.state = 'waiting'
        AND (NOT edge.is_weak OR parent.state = 'futile')
    UNION
    SELECT edge.child_id FROM below JOIN dags_edge AS edge ON edge.parent_id = below.id
    JOIN dags_node AS child ON child.id = edge.child_id
    WHERE child.state = 'waiting'
)
SELECT id FROM below
"""

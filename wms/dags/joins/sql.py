"""SQL of joins: arcs counted when their parents end, counted anew, and nodes to be decided."""

from __future__ import annotations

# What an arc of a joined node is: it holds, is ruled out by a condition, or is lost by a failure
# that nothing handles. One whose parent has not ended is none of these. A failure is handled when
# the condition of any arc from it holds; the conditions are found by `condition_unique`.
_VERDICT = """CASE
    WHEN {state} = 'skipped' THEN 'ruled out'
    WHEN {state} = 'futile' THEN 'lost'
    WHEN {state} NOT IN ('done', 'failed') THEN NULL
    WHEN condition.id IS NOT NULL
        THEN CASE WHEN condition.holds THEN 'holds' ELSE 'ruled out' END
    WHEN {state} = 'done' OR edge.is_weak THEN 'holds'
    WHEN EXISTS (
        SELECT FROM dags_condition AS other WHERE other.parent_id = edge.parent_id AND other.holds
    ) THEN 'ruled out'
    ELSE 'lost' END"""
_CONDITION = """LEFT JOIN dags_condition AS condition
        ON condition.parent_id = edge.parent_id AND condition.child_id = edge.child_id"""
_COUNTS = """count(*) FILTER (WHERE verdict = 'holds') AS held,
        count(*) FILTER (WHERE verdict = 'ruled out') AS ruled_out,
        count(*) FILTER (WHERE verdict = 'lost') AS lost"""
_COLUMNS = """node.id, node.state, node.features IS NOT NULL, joined.needed_count,
    joined.arc_count, joined.held_count, joined.ruled_out_count, joined.lost_count"""

# The ends of these parents, in these states, counted in the joins of their children, which are
# returned. By hand, because the ORM cannot add another number to each row. The arcs are found by
# `edge_unique`, the joins and the nodes by their primary keys.
COUNT_ENDS = f"""
WITH arc AS (
    SELECT edge.child_id, {_VERDICT.format(state="ended.state")} AS verdict
    FROM unnest(%(parents)s::bigint[], %(states)s::text[]) AS ended(id, state)
    JOIN dags_edge AS edge ON edge.parent_id = ended.id AND edge.is_joined
    {_CONDITION}
), counted AS (
    SELECT child_id, {_COUNTS} FROM arc GROUP BY child_id
), joined AS (
    UPDATE dags_join AS changed
    SET held_count = changed.held_count + counted.held,
        ruled_out_count = changed.ruled_out_count + counted.ruled_out,
        lost_count = changed.lost_count + counted.lost
    FROM counted WHERE changed.node_id = counted.child_id
    RETURNING changed.*
)
SELECT {_COLUMNS} FROM joined JOIN dags_node AS node ON node.id = joined.node_id
ORDER BY node.ordinal
"""

# The arcs of these nodes as their parents are now; a tolerated failure counts as a good end. By
# hand, so that its conditions are those of the one above. The arcs are found by the index of their
# children, parents, their work and joins by the primary keys.
RECOUNT_ARCS = f"""
WITH arc AS (
    SELECT edge.child_id, {_VERDICT.format(state="ended.state")} AS verdict
    FROM dags_edge AS edge
    JOIN dags_node AS parent ON parent.id = edge.parent_id
    LEFT JOIN dags_nodework AS work ON work.node_id = parent.id AND parent.state = 'failed'
    CROSS JOIN LATERAL (
        SELECT CASE WHEN work.is_tolerated THEN 'done' ELSE parent.state END AS state
    ) AS ended
    {_CONDITION}
    WHERE edge.child_id = ANY(%(nodes)s::bigint[]) AND edge.is_joined
), counted AS (
    SELECT child_id, {_COUNTS} FROM arc GROUP BY child_id
)
UPDATE dags_join AS changed
SET held_count = counted.held, ruled_out_count = counted.ruled_out, lost_count = counted.lost
FROM counted WHERE changed.node_id = counted.child_id
"""

# What a joined node waits for is its join, as one: it is ready to begin once that is met. By hand
# as the ones above; joins and nodes are found by their primary keys.
FOLLOW_JOINS = """
UPDATE dags_node AS node
SET unfinished_parents = (joined.held_count < joined.needed_count)::int
FROM dags_join AS joined
WHERE joined.node_id = ANY(%(nodes)s::bigint[]) AND node.id = joined.node_id
"""

# What certainly ends with these nodes, which are skipped or futile, however deep: below a skipped
# one those that need all of their arcs, below a futile one those that have no other arc. By hand: a
# walk that the ORM cannot express. The arcs are found by `edge_unique`, joins and nodes by their
# primary keys: OFFSET keeps the planner from reading the tables whole for each step.
FIND_ENDED_WITH = """
WITH RECURSIVE below(id, state) AS (
    SELECT id, state FROM unnest(%(parents)s::bigint[], %(states)s::text[]) AS ended(id, state)
    UNION
    SELECT child.id, below.state
    FROM below CROSS JOIN LATERAL (
        SELECT node.id FROM dags_edge AS edge
        JOIN dags_join AS joined ON joined.node_id = edge.child_id
        JOIN dags_node AS node ON node.id = edge.child_id
        WHERE edge.parent_id = below.id AND edge.is_joined AND node.state = 'waiting'
            AND CASE below.state WHEN 'skipped' THEN joined.needed_count = joined.arc_count
                ELSE joined.arc_count = 1 END
        OFFSET 0
    ) AS child
)
SELECT id, state FROM below WHERE id <> ALL(%(parents)s::bigint[])
"""

# Nodes of a DAG that wait although too few of their arcs can hold. By hand, because it has the
# columns of the first one. The nodes are found by `node_by_dag_and_place`, the joins by the
# primary key.
FIND_UNMET = f"""
SELECT {_COLUMNS} FROM dags_node AS node JOIN dags_join AS joined ON joined.node_id = node.id
WHERE node.dag_id = %(dag)s AND node.state = 'waiting'
    AND joined.held_count < joined.needed_count
    AND (joined.arc_count - joined.ruled_out_count < joined.needed_count
        OR joined.held_count + joined.ruled_out_count + joined.lost_count = joined.arc_count)
ORDER BY node.ordinal
"""

# By hand, because the ORM sends each of so many ids as a value of its own. The arcs are found by
# the index of their children.
MARK_ARCS = """
UPDATE dags_edge SET is_joined = true WHERE child_id = ANY(%(joined)s::bigint[])
"""

# A join for each of these nodes, which needs all of its arcs unless another number is given. By
# hand, because the ORM cannot insert what it counts. The arcs are found by the index of their
# children.
STORE_JOINS = """
INSERT INTO dags_join (node_id, needed_count, arc_count)
SELECT child_id, coalesce(min(given.needed), count(*)), count(*)
FROM dags_edge AS edge
LEFT JOIN unnest(%(nodes)s::bigint[], %(needed)s::int[]) AS given(id, needed)
    ON given.id = edge.child_id
WHERE edge.child_id = ANY(%(joined)s::bigint[])
GROUP BY child_id
"""

"""SQL of the services on nodes: descendants, counts of unfinished parents, lost parents.

Lost parents are those that keep nodes from ever running.
"""

from __future__ import annotations

# The chosen nodes and everything that depends on them. By hand: a walk that the ORM cannot
# express. The arcs are found by `edge_unique`.
FIND_WITH_DESCENDANTS = """
WITH RECURSIVE below(id) AS (
    SELECT unnest(%s::bigint[])
    UNION
    SELECT edge.child_id FROM below JOIN dags_edge AS edge ON edge.parent_id = below.id
)
SELECT id FROM below
"""

# How many parents of each of these nodes have not ended, counted anew after some run again; nodes
# with joins have counts of their own (`wms.dags.joins`). By
# hand, so that its conditions can be compared with those of the engine and of the next one. The
# nodes are found by the primary key, the arcs by the index of their children.
RECOUNT_PARENTS = """
UPDATE dags_node AS node
SET unfinished_parents = (
    SELECT count(*) FROM dags_edge AS edge JOIN dags_node AS parent ON parent.id = edge.parent_id
    WHERE edge.child_id = node.id AND parent.state <> 'done' AND NOT edge.is_joined
        AND NOT (parent.state = 'failed' AND (edge.is_weak OR EXISTS (
            SELECT FROM dags_nodework AS work WHERE work.node_id = parent.id AND work.is_tolerated
        )))
)
WHERE node.id = ANY(%s)
    AND NOT EXISTS (SELECT FROM dags_join AS joined WHERE joined.node_id = node.id)
"""

# Parents outside of the nodes that run again which keep some of them from ever running. By hand
# as the one above, whose conditions these are; found by the same indexes.
FIND_LOST_PARENTS = """
SELECT DISTINCT parent.id
FROM dags_edge AS edge
JOIN dags_node AS parent ON parent.id = edge.parent_id
WHERE edge.child_id = ANY(%s) AND NOT edge.is_joined
    AND (parent.state = 'futile' OR (parent.state = 'failed' AND NOT edge.is_weak AND NOT EXISTS (
        SELECT FROM dags_nodework AS work WHERE work.node_id = parent.id AND work.is_tolerated
    )))
"""

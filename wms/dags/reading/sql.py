"""SQL for pages of DAGs: columns of all nodes and arcs as bytes, and walks along arcs.

The walks count descendants, and find failed ancestors and outer DAGs. Also the version of the
nodes' states.
"""

from __future__ import annotations

from collections.abc import Mapping

# As one value each: hundreds of thousands of rows would take seconds on their way. By hand,
# because the ORM has no aggregate of bytes. The nodes are found by `node_by_dag_and_place`.
READ_NODE_IDS = (
    "SELECT string_agg(int8send(id), ''::bytea ORDER BY id) FROM dags_node WHERE dag_id = %s"
)

# By the range of the ids, in the order of `edge_unique`; those of DAGs submitted meanwhile are
# few. By hand as the ids.
READ_ARCS = """
SELECT string_agg(int8send(parent_id), ''::bytea ORDER BY parent_id, child_id),
    string_agg(int8send(child_id), ''::bytea ORDER BY parent_id, child_id)
FROM dags_edge WHERE parent_id BETWEEN %s AND %s
"""

# One letter a node, by hand as the ids: rows would take ten times as long. Those that stand beside
# the others, as FINAL, have capital letters. The nodes are found by `node_by_dag_and_place`.
READ_NODE_STATES = """
SELECT string_agg(
    CASE WHEN kind = ANY(%s) THEN letter ELSE upper(letter) END, '' ORDER BY id
) FROM (SELECT id, kind, CASE state {cases} END AS letter FROM dags_node WHERE dag_id = %s) AS node
"""


def read_node_states(letters: Mapping[str, str]) -> str:
    """`READ_NODE_STATES` with these letters for the states."""
    cases = (f"WHEN '{state}' THEN '{letter}'" for state, letter in letters.items())
    return READ_NODE_STATES.format(cases=" ".join(cases))


# By hand, because it is the clock of the database that counts, at the same instant as the events.
# The last event is found by `nodeevent_by_dag`.
READ_VERSION = """
SELECT coalesce(max(id), 0), statement_timestamp() FROM dags_nodeevent WHERE dag_id = %s
"""

# By hand as the ids of the nodes, and in their order.
READ_NODE_TIMES = """
SELECT string_agg(float8send(extract(epoch FROM state_since)::float8), ''::bytea ORDER BY id)
FROM dags_node WHERE dag_id = %s
"""

# How many nodes depend on some, by state. By hand: a walk that the ORM cannot express. The arcs
# are found by `edge_unique`, the nodes by the primary key.
COUNT_DESCENDANTS = """
WITH RECURSIVE below(id) AS (
    SELECT child_id FROM dags_edge WHERE parent_id = ANY(%(given)s)
    UNION
    SELECT edge.child_id FROM below JOIN dags_edge AS edge ON edge.parent_id = below.id
)
SELECT node.state, count(*) FROM below JOIN dags_node AS node ON node.id = below.id
WHERE node.id <> ALL(%(given)s) GROUP BY node.state
"""

# The failed nodes above one that will never run. By hand: a walk that the ORM cannot express. The
# arcs are found by the index of their children, the nodes by the primary key.
FIND_FAILED_ANCESTORS = """
WITH RECURSIVE above(id) AS (
    SELECT parent_id FROM dags_edge WHERE child_id = %s
    UNION
    SELECT edge.parent_id FROM above
    JOIN dags_node AS node ON node.id = above.id AND node.state = 'futile'
    JOIN dags_edge AS edge ON edge.child_id = above.id
)
SELECT node.id FROM above JOIN dags_node AS node ON node.id = above.id
WHERE node.state = 'failed' AND NOT EXISTS (
    SELECT FROM dags_nodework AS work WHERE work.node_id = node.id AND work.is_tolerated
) ORDER BY node.ordinal LIMIT %s
"""

# The DAGs around one, the outermost first. By hand: a walk that the ORM cannot express. DAGs and
# nodes are found by their primary keys.
FIND_OUTER_DAGS = """
WITH RECURSIVE around(id, name, parent_node_id, distance) AS (
    SELECT id, name, parent_node_id, 0 FROM dags_dag WHERE id = %s
    UNION ALL
    SELECT dag.id, dag.name, dag.parent_node_id, around.distance + 1
    FROM around
    JOIN dags_node AS node ON node.id = around.parent_node_id
    JOIN dags_dag AS dag ON dag.id = node.dag_id
)
SELECT id, name FROM around WHERE distance > 0 ORDER BY distance DESC
"""

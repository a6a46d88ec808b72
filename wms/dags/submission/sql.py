"""SQL of submissions: ids for new nodes, and COPY of nodes and arcs."""

from __future__ import annotations

# By hand: the ORM knows no sequences. Ids are known before the rows are sent, since arcs name
# them. No table is read.
RESERVE_NODE_IDS = "SELECT nextval('dags_node_id_seq') FROM generate_series(1, %s)"

# By hand: the ORM knows no COPY. No table is read.
COPY_NODES = """
COPY dags_node (id, dag_id, name, kind, ordinal, submit_description_id, directory, variables,
    features, priority, category, state, state_reason, unfinished_parents, max_retries,
    retry_number, is_plain)
FROM STDIN
"""

# By hand as the nodes.
COPY_ARCS = "COPY dags_edge (parent_id, child_id, is_weak) FROM STDIN"

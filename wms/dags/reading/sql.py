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

# A node's latest job, and the attempt of it that counts. By hand as `COMPARE_NODES`, whose sides
# these are: the nodes are found by `node_by_dag_and_place`, jobs and attempts by their numbers.
_SIDE = """
SELECT node.name, node.id, node.ordinal, node.state, job.site_name AS site,
    node.retry_number + coalesce(job.attempt_number, 0) AS tries,
    attempt.exit_code, attempt.signal,
    coalesce(nullif(node.state_cause, ''), job.state_cause, '') AS cause,
    extract(epoch FROM attempt.started_at - job.created_at)::float8 AS queue_s,
    coalesce(
        attempt.wall_s, extract(epoch FROM attempt.ended_at - attempt.started_at)::float8
    ) AS wall_s
FROM dags_node AS node
LEFT JOIN jobs_job AS job ON job.id = node.job_id
LEFT JOIN jobs_attempt AS attempt
    ON attempt.job_id = job.id AND attempt.number = job.attempt_number
WHERE node.dag_id =
"""

# All in one, since the page, the counts and the sums need the same join of all nodes. By hand: the
# ORM has no full join.
COMPARE_NODES = f"""
WITH here AS ({_SIDE} %(here)s), there AS ({_SIDE} %(there)s), compared AS MATERIALIZED (
    SELECT coalesce(here.name, there.name) AS name,
        here.id AS here_id, there.id AS there_id,
        coalesce(here.ordinal, there.ordinal) AS ordinal,
        here.state AS here_state, there.state AS there_state,
        here.tries AS here_tries, there.tries AS there_tries,
        here.site AS here_site, there.site AS there_site,
        here.exit_code AS here_code, there.exit_code AS there_code,
        here.signal AS here_signal, there.signal AS there_signal,
        here.cause AS here_cause, there.cause AS there_cause,
        here.queue_s AS here_queue_s, there.queue_s AS there_queue_s,
        here.wall_s AS here_wall_s, there.wall_s AS there_wall_s,
        here.wall_s - there.wall_s AS slower_s,
        array_remove(CASE
            WHEN there.id IS NULL THEN ARRAY['only_here']
            WHEN here.id IS NULL THEN ARRAY['only_there']
            ELSE ARRAY[
                CASE WHEN here.state <> there.state THEN 'state' END,
                CASE WHEN (here.exit_code, here.signal, here.cause)
                    IS DISTINCT FROM (there.exit_code, there.signal, there.cause)
                    THEN 'outcome' END,
                CASE WHEN here.tries <> there.tries THEN 'tries' END,
                CASE WHEN coalesce(here.site, '') <> coalesce(there.site, '') THEN 'site' END,
                CASE WHEN here.wall_s - there.wall_s >= greatest(%(least_s)s, there.wall_s / 5)
                    THEN 'slower' END,
                CASE WHEN there.wall_s - here.wall_s >= greatest(%(least_s)s, here.wall_s / 5)
                    THEN 'faster' END,
                CASE WHEN here.queue_s - there.queue_s >= greatest(%(least_s)s, there.queue_s / 5)
                    THEN 'longer_queue' END,
                CASE WHEN there.queue_s - here.queue_s >= greatest(%(least_s)s, here.queue_s / 5)
                    THEN 'shorter_queue' END
            ] END, NULL) AS differences
    FROM here FULL JOIN there ON here.name = there.name
), chosen AS (
    SELECT * FROM compared WHERE CASE %(chosen)s
        WHEN 'all' THEN true
        WHEN 'equal' THEN differences = ARRAY[]::text[]
        WHEN 'any' THEN differences <> ARRAY[]::text[]
        ELSE %(chosen)s = ANY(differences) END
    ORDER BY CASE
            WHEN differences && ARRAY['only_here', 'only_there', 'state', 'outcome'] THEN 0
            WHEN differences <> ARRAY[]::text[] THEN 1
            ELSE 2 END,
        slower_s DESC NULLS LAST, ordinal, name
    LIMIT %(limit)s OFFSET %(offset)s
), differing AS (
    SELECT difference, count(*) AS nodes
    FROM compared CROSS JOIN unnest(differences) AS difference GROUP BY difference
), sites AS (
    SELECT side, site, count(*) AS nodes FROM compared
    CROSS JOIN LATERAL (VALUES ('here', here_site), ('there', there_site)) AS ends(side, site)
    WHERE site <> '' GROUP BY side, site
)
SELECT
    (SELECT json_build_object(
        'all', count(*), 'equal', count(*) FILTER (WHERE differences = ARRAY[]::text[]),
        'here_wall_s', sum(here_wall_s), 'there_wall_s', sum(there_wall_s),
        'here_queue_s', sum(here_queue_s), 'there_queue_s', sum(there_queue_s)
    )::text FROM compared),
    (SELECT coalesce(json_object_agg(difference, nodes), '{{}}')::text FROM differing),
    (SELECT coalesce(json_agg(sites ORDER BY side, nodes DESC, site), '[]')::text FROM sites),
    (SELECT coalesce(json_agg(chosen), '[]')::text FROM chosen)
"""

# Submit descriptions of two DAGs that are not the same, by name. By hand: the ORM has no full join.
# They are found by `submit_description_unique`.
COMPARE_DESCRIPTIONS = """
SELECT coalesce(here.name, there.name) AS name, here.id IS NOT NULL, there.id IS NOT NULL
FROM (SELECT id, name, content FROM dags_submitdescription WHERE dag_id = %(here)s) AS here
FULL JOIN (SELECT id, name, content FROM dags_submitdescription WHERE dag_id = %(there)s) AS there
    ON here.name = there.name
WHERE here.content IS DISTINCT FROM there.content
ORDER BY 1 LIMIT %(limit)s
"""

"""SQL of the installation, of advisory locks, of counts in bounded time, and of inserts."""

from __future__ import annotations

# What tells an installation from one that was restored from its dump: the ORM does not know it.
READ_INSTALLATION = """
SELECT system_identifier || '-' || (SELECT oid FROM pg_database WHERE datname = current_database())
FROM pg_control_system()
"""

# The ORM knows no advisory locks. Keys are tried one after another, and no more of them than until
# one is free. No table is read.
TAKE_FREE_LOCK = (
    "SELECT key FROM unnest(%s::int[]) AS key WHERE pg_try_advisory_lock(%s, key) LIMIT 1"
)
TAKE_FREE_LOCK_OF_TRANSACTION = (
    "SELECT key FROM unnest(%s::int[]) AS key WHERE pg_try_advisory_xact_lock(%s, key) LIMIT 1"
)
WAIT_FOR_LOCKS = "SELECT pg_advisory_xact_lock(%s, key) FROM unnest(%s::int[]) AS key"
RELEASE_LOCK = "SELECT pg_advisory_unlock(%s, %s)"

# As the ORM would write it, but for the names of its parameters: it writes no statement that is to
# stay prepared. No table is read.
INSERT_ROW = 'INSERT INTO "{table}" ({given}) VALUES ({values}) RETURNING {returned}'

# The parts of counts, around querysets. By hand, because the ORM cannot make one query of figures
# of several kinds, of which one is read from what another has found. The indexes are those of the
# querysets, of each of which no more is read than the limit.
NO_ROWS = "SELECT NULL WHERE FALSE"
NO_STATES = "SELECT NULL AS id, NULL AS state WHERE FALSE"
TOGETHER = " UNION ALL "
SUMMARY = "WITH latest AS MATERIALIZED ({latest}), few AS MATERIALIZED ({few}) {figures}"
STATES_OF_LATEST = "SELECT state FROM latest"
COUNT_LATEST = "SELECT 'all', NULL, count(*) FROM latest"
COUNT_FREQUENT = """
(SELECT 'by {name}', by_{name}::text, count(*)
FROM (SELECT by_{name} FROM latest LIMIT {limit}) AS counted
GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT {top})
"""
COUNT_IN_STATE = """
CASE WHEN (SELECT count(*) FROM few) > {limit} THEN {many}
    ELSE (SELECT count(*) FROM few WHERE few.state = %s) END
"""
COUNT_ROWS = "(SELECT count(*) FROM ({rows}) AS counted)"
LABELLED = "SELECT %s, %s, {number}"

# What the planner expects, by its statistics; no row is read.
EXPLAIN = "EXPLAIN (FORMAT JSON) {statement}"

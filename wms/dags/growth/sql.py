"""SQL of growth: arcs and conditions handed over by a node to the one that takes its place."""

from __future__ import annotations

# What followed these nodes follows others from now on. By hand, because the ORM sends an UPDATE
# for each node. The arcs are found by `edge_unique`.
HAND_OVER_ARCS = """
UPDATE dags_edge AS edge SET parent_id = given.heir
FROM unnest(%(nodes)s::bigint[], %(heirs)s::bigint[]) AS given(node, heir)
WHERE edge.parent_id = given.node
"""

# By hand as the arcs. The conditions are found by `condition_unique`.
HAND_OVER_CONDITIONS = """
UPDATE dags_condition AS condition SET parent_id = given.heir
FROM unnest(%(nodes)s::bigint[], %(heirs)s::bigint[]) AS given(node, heir)
WHERE condition.parent_id = given.node
"""

"""SQL of the negotiator: bind many matched DAGs, and store reasons of unmatched ones."""

from __future__ import annotations

# By hand because each row gets values of its own: the ORM's bulk update, a CASE with a branch for
# every row and column, takes some ten times as long. One JSON document is quoted faster than
# arrays of them. The DAGs are found by the primary key.
BIND_DAGS = """
UPDATE dags_dag AS dag
SET site_id = bound.site_id, matched_at = %(now)s, match_attributes = ad.attributes,
    environment = bound.environment, substitutions = bound.substitutions,
    unmatched_reason = '', unmatched_kind = ''
FROM jsonb_to_recordset(%(bound)s)
    AS bound(dag_id bigint, site_id bigint, environment jsonb, substitutions jsonb)
JOIN jsonb_to_recordset(%(ads)s) AS ad(site_id bigint, attributes jsonb)
    ON ad.site_id = bound.site_id
WHERE dag.id = bound.dag_id
"""

# By hand as the one above. A reason that did not change is not written again. Many DAGs share few
# reasons, which are long: so each is sent once, and the DAGs name it by its place. The DAGs are
# found by the primary key.
NOTE_REASONS = """
UPDATE dags_dag AS dag
SET unmatched_reason = reason.text, unmatched_kind = reason.kind
FROM unnest(%(dags)s::bigint[], %(places)s::int[]) AS note(dag_id, place)
JOIN unnest(%(reasons)s::text[], %(kinds)s::text[]) WITH ORDINALITY AS reason(text, kind, place)
    ON reason.place = note.place
WHERE dag.id = note.dag_id AND dag.state = ANY(%(states)s)
    AND (dag.unmatched_reason <> reason.text OR dag.unmatched_kind <> reason.kind)
"""

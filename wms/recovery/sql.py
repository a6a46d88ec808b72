"""SQL of recovery: ids that are not given again."""

from __future__ import annotations

# By hand, because the ORM knows no sequences. Those of the small numbers that Django gives to its
# own rows stay. The catalogue has a sequence for each table.
ADVANCE_IDS = """
SELECT count(setval(format('%%I.%%I', schemaname, sequencename)::regclass,
    coalesce(last_value, start_value) + %(gap)s))
FROM pg_sequences
WHERE schemaname = current_schema() AND data_type = 'bigint'::regtype
"""

"""SQL of the check that no audit entry is outside of the chain."""

from __future__ import annotations

# By hand, because the ORM takes no arrays apart; one statement, so that an entry that is sealed
# meanwhile is seen in one of the two places. It reads all three tables, as it is asked to.
FIND_STRAY = """
SELECT min(id) FROM (
    SELECT id FROM core_auditentry
    EXCEPT SELECT entry_id FROM core_unsealedentry
    EXCEPT SELECT unnest(entry_ids) FROM core_auditseal
) AS stray
"""

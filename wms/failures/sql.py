"""SQL of failure counts: add to bins and groups, remove empty and old bins."""

from __future__ import annotations

# By hand because the ORM's upsert cannot add the old row to the new one. The bins are found by
# `failurebin_unique`.
ADD_TO_BINS = """
INSERT INTO failures_failurebin AS bin (group_id, span, start, site_name, count)
SELECT * FROM unnest(
    %(groups)s::bigint[], %(spans)s::text[], %(starts)s::timestamptz[], %(sites)s::text[],
    %(counts)s::int[])
ON CONFLICT (group_id, span, start, site_name)
DO UPDATE SET count = bin.count + excluded.count
"""

# By hand because each group gets values of its own, beside those that it has. The groups are
# found by the primary key.
ADD_TO_GROUPS = """
UPDATE failures_failuregroup AS g
SET total = g.total + seen.count,
    first_seen = least(g.first_seen, seen.first), last_seen = greatest(g.last_seen, seen.last)
FROM unnest(%(groups)s::bigint[], %(counts)s::int[], %(firsts)s::timestamptz[],
    %(lasts)s::timestamptz[]) AS seen(id, count, first, last)
WHERE g.id = seen.id
"""

# By hand as its neighbours, with whose rows it deals. The bins are found by `failurebin_unique`.
REMOVE_EMPTY_BINS = "DELETE FROM failures_failurebin WHERE group_id = ANY(%s) AND count <= 0"

# By hand as its neighbours; a batch, so that none takes long. The bins are found by
# `failurebin_by_start`.
REMOVE_OLD_BINS = """
DELETE FROM failures_failurebin WHERE id IN (
    SELECT id FROM failures_failurebin WHERE span = %s AND start < %s LIMIT %s)
"""

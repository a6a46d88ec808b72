"""SQL of bulk operations: freeze a selection of rows, and store the outcomes of objects."""

from __future__ import annotations

# By hand, because the ORM cannot insert what a query selects: the objects would travel to the
# process and back. One statement, so that what is frozen is one state of the table; in the order
# of the objects, as they are locked later. A filter may find an object twice, by two of its
# attempts. The rows are found by the index that serves the list's filter; `bulkitem_once` holds
# that each is there once.
FREEZE_SELECTION = """
INSERT INTO bulk_bulkitem (operation_id, object_id)
SELECT DISTINCT %s::bigint, chosen.id FROM ({rows}) AS chosen(id) ORDER BY chosen.id LIMIT %s
"""

# By hand, because each row gets an outcome and a reason of its own: the ORM's bulk update writes
# a CASE with a branch for each. The rows are found by `bulkitem_once`.
SETTLE_ITEMS = """
UPDATE bulk_bulkitem AS item SET outcome = result.outcome, reason = result.reason
FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS result(object_id, outcome, reason)
WHERE item.operation_id = %s AND item.object_id = result.object_id
"""

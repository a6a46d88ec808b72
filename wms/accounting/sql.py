"""SQL of accounting: charge submitters for slots, and add core-seconds to the daily accounts."""

from __future__ import annotations

from collections.abc import Sequence

# One statement for all submitters, by hand because the ORM's bulk update writes a CASE with a
# branch for each row and column. The numbers come from `decayed_priority`, so that the formula
# stands in one place. The rows are found by the primary key.
CHARGE_SUBMITTERS = """
UPDATE accounting_submitter AS s
SET real_priority = n.priority, used_slots = n.slots, used_slot_s = n.slot_s,
    charged_at = greatest(s.charged_at, %s)
FROM unnest(%s::bigint[], %s::float8[], %s::float8[], %s::float8[])
    AS n(id, priority, slots, slot_s)
WHERE s.id = n.id
"""

# By hand because the ORM's upsert cannot add the old row to the new one. In the order of the keys,
# so that two who add at once do not wait for each other in a circle. The row of the same key is
# found by `daily_use_unique`.
ADD_USES = """
INSERT INTO accounting_dailyuse AS known (day, site_name, owner_name, {columns})
SELECT * FROM unnest(%s::date[], %s::text[], %s::text[], {arrays})
    AS new(day, site_name, owner_name, {columns})
ORDER BY day, site_name, owner_name
ON CONFLICT (day, site_name, owner_name) DO UPDATE SET {sums}
"""


def add_uses_of(seconds: Sequence[str], counts: Sequence[str]) -> str:
    """`ADD_USES` with these columns: of seconds, and of whole numbers."""
    columns = (*seconds, *counts)
    return ADD_USES.format(
        columns=", ".join(columns),
        arrays=", ".join(["%s::float8[]"] * len(seconds) + ["%s::integer[]"] * len(counts)),
        sums=", ".join(f"{name} = known.{name} + excluded.{name}" for name in columns),
    )

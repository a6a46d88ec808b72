"""SQL of accounting: charge submitters for slots, and add core-seconds to the daily accounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
# found by the unique index of the table, `daily_use_unique` or `label_use_unique`.
ADD_USES = """
INSERT INTO {table} AS known ({keys}, {columns})
SELECT * FROM unnest({arrays}) AS new({keys}, {columns})
ORDER BY {keys}
ON CONFLICT ({keys}) DO UPDATE SET {sums}
"""


def add_uses_of(
    table: str, keys: Mapping[str, str], seconds: Sequence[str], counts: Sequence[str]
) -> str:
    """`ADD_USES` for a table with these columns: keys with their types, seconds, whole numbers."""
    columns = (*seconds, *counts)
    types = (*keys.values(), *["float8"] * len(seconds), *["integer"] * len(counts))
    return ADD_USES.format(
        table=table,
        keys=", ".join(keys),
        columns=", ".join(columns),
        arrays=", ".join(f"%s::{each}[]" for each in types),
        sums=", ".join(f"{name} = known.{name} + excluded.{name}" for name in columns),
    )

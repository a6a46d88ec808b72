"""SQL of the self-test: PostgreSQL's settings on which durability depends, and its clock."""

from __future__ import annotations

# On which it depends whether what was committed is kept.
READ_DURABILITY = """
SELECT name, setting FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')
"""

# The time of the database's host, not that of the transaction.
READ_CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"

"""SQL of backups: the snapshot that a dump and everything beside it see; what follows a restore."""

from __future__ import annotations

# By hand, because the ORM knows neither levels of isolation nor snapshots. No table is read.
ISOLATE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
EXPORT_SNAPSHOT = (
    "SELECT pg_export_snapshot(), clock_timestamp(), current_setting('server_version_num')::integer"
)

# A dump has rows and no statistics: without them the first plans would be bad ones.
GATHER_STATISTICS = "ANALYZE"

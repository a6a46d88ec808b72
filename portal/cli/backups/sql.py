"""SQL of backups: the snapshot that a dump and everything beside it see."""

from __future__ import annotations

# By hand, because the ORM knows neither levels of isolation nor snapshots. No table is read.
ISOLATE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
EXPORT_SNAPSHOT = (
    "SELECT pg_export_snapshot(), now(), current_setting('server_version_num')::integer"
)

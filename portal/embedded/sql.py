"""SQL statement that creates the database of the embedded PostgreSQL server."""

from __future__ import annotations

# By hand, as there is no connection yet.
CREATE_DATABASE = "CREATE DATABASE {name}\n"

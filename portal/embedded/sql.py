"""What is typed to the PostgreSQL server that is brought along, before anybody can connect."""

from __future__ import annotations

# By hand, as there is no connection yet.
CREATE_DATABASE = "CREATE DATABASE {name}\n"

"""Django's databases from the address of a server, or of a pool in front of it.

A pool that hands out sessions for one transaction each, as PgBouncer in the mode `transaction`,
keeps nothing of a session from one transaction to the next: no prepared statements, no cursors, no
parameters, and no locks but those of transactions.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from wms.core.database.locks import LOCKS

#: With the time for the broker, health is known within five seconds.
_CONNECT_TIMEOUT_S = 3


def databases(url: str, *, is_pooled: bool) -> dict[str, dict[str, Any]]:
    """Value of `DATABASES`.

    Behind a pool the locks that are held over several transactions have connections of their own.
    """
    if not is_pooled:
        return {"default": _database(url, _of_sessions())}
    pooled = _database(url, {"prepare_threshold": None}) | {"DISABLE_SERVER_SIDE_CURSORS": True}
    return {"default": pooled, LOCKS: pooled | {"TEST": {"MIRROR": "default"}}}


def _of_sessions() -> dict[str, Any]:
    """Options of connections each of which is a session of the server."""
    return {
        # Allows prepared statements; only `prepared_rows` asks for them.
        "prepare_threshold": 5,
        # The server gives up a peer that is gone without a word as soon as we do: by default it
        # kept what it has locked for two hours. The first is of disks that seek in no time, and of
        # data that is mostly in memory: by default the planner would rather read a whole table
        # than a thousand rows by their index.
        "options": "-c random_page_cost=1.1 -c tcp_keepalives_idle=30"
        " -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3",
    }


def _database(url: str, options: dict[str, Any]) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "ENGINE": "portal.database",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 60,
        # A connection that died with the server is replaced instead of failing its first query.
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "connect_timeout": _CONNECT_TIMEOUT_S,
            # A peer that is gone without a word, a host that was cut off for example, is given up
            # after a minute.
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            **options,
        },
    }

"""PostgreSQL backend of Django that checks a kept connection without a query.

A connection that is kept between requests may have died with the server. Django sends a query
before each request (`CONN_HEALTH_CHECKS`). But a dead connection has something to read, the
server's farewell or the end of the stream, and an idle one has nothing: only a connection with
something to read is queried.
"""

from __future__ import annotations

import select
from typing import Any

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """PostgreSQL for Django; found by the name of this module."""

    def is_usable(self) -> bool:
        """Whether the connection is alive, without a query where possible.

        After an error it is always queried.
        """
        if not self.errors_occurred and _is_quiet(self.connection):
            return True
        return bool(super().is_usable())


def _is_quiet(connection: Any) -> bool:
    """True when the connection is open and the server has sent nothing since the last answer."""
    if connection is None or connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)

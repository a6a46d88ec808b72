"""Django's own way to PostgreSQL, with a look at a connection that costs no query.

A connection that is kept between requests may have died with the server. Django asks it something
before each request (`CONN_HEALTH_CHECKS`). But one that died has something to read, the server's
farewell or the end of the stream, and one that is idle has nothing: only one that has is asked.
"""

from __future__ import annotations

import select
from typing import Any

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """PostgreSQL for Django; found by the name of this module."""

    def is_usable(self) -> bool:
        """Whether the connection still answers, as far as can be told without a question.

        After an error it is asked in any case.
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

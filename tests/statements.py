"""Trace of the statements that PostgreSQL carries out during a call, prepared ones included.

Django's own log of queries does not see those that `prepared_rows` sends; the driver's trace of
what the server answers sees all.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable

from django.db import connection

_DONE = re.compile(r'^[^\t]*\tB\t\d+\tCommandComplete\t "([A-Z]+)', re.MULTILINE)
#: A transaction of its own begins and ends with these, inside that of a test.
_OF_TRANSACTIONS = frozenset({"SAVEPOINT", "RELEASE", "BEGIN", "COMMIT"})


def carried_out_by(call: Callable[[], object]) -> list[str]:
    """The commands that the server carried out during the call, as `SELECT` or `UPDATE`, in order.

    Beginnings and ends of transactions are left out.
    """
    connection.ensure_connection()
    with tempfile.NamedTemporaryFile("r") as trace:
        driver = connection.connection.pgconn
        with open(trace.name, "w") as written:
            driver.trace(written.fileno())
            try:
                call()
            finally:
                driver.untrace()
        return [command for command in _DONE.findall(trace.read())
                if command not in _OF_TRANSACTIONS]  # fmt: skip

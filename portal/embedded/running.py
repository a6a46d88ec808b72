"""Embedded PostgreSQL that runs inside a `with` block, for a command on the data of a portal."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portal.embedded.postgres import Postgres
from portal.embedded.readiness import wait_for_postgres

_STOP_LIMIT_S = 300


@contextmanager
def running_postgres(postgres: Postgres, log: Path, **settings: str) -> Iterator[None]:
    """Run the prepared server; at the end it has written everything to the disk."""
    with log.open("ab") as stream:
        # A session of its own keeps a Ctrl-C away from the server: it is stopped last.
        server = subprocess.Popen(
            postgres.command(**settings), stdin=subprocess.DEVNULL, stdout=stream,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        wait_for_postgres(postgres.url)
        yield
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(_STOP_LIMIT_S)

"""Runner of a management command on a temporary database, never that of an installation."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from portal.cli import without_servers
from portal.cli.state_directory import StateDirectory
from portal.embedded.identity import NoIdentity
from portal.embedded.postgres import PostgresUnusable
from portal.embedded.private_database import private_database, surroundings
from portal.embedded.readiness import NotReady

_FAILED = 2


def main(arguments: Sequence[str]) -> int:
    """Run the management command of the command line on a database of its own.

    DATABASE_URL of the environment is not used: it may be that of an installation.
    """
    is_asked_elsewhere = any(each.split("=")[0] == "--portal" for each in arguments)
    if not arguments or is_asked_elsewhere or {"-h", "--help", "--version"}.intersection(arguments):
        return without_servers.main(arguments)
    # Both ways of ending leave the block below in order, which stops the server.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with private_database(StateDirectory.from_environment().var / "simulation") as (
            url,
            folder,
        ):
            os.environ.update(surroundings(url, folder))
            return _run()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except (NoIdentity, NotReady, PostgresUnusable, OSError) as error:
        sys.stderr.write(f"The private database cannot be started: {error}\n")
        return _FAILED


def _run() -> int:
    import django
    from django.core.management import execute_from_command_line
    from django.db import connections

    django.setup()
    try:
        execute_from_command_line(sys.argv)
    finally:
        connections.close_all()
    return 0

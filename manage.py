#!/usr/bin/env python3
"""The command line of Pilotage."""

from __future__ import annotations

import importlib.util
import os
import sys

#: These prepare what the settings read, so they run before Django is set up.
BEFORE_DJANGO = {
    "up": "portal.cli.up",
    "demo": "portal.cli.demo",
    "check_dag": "portal.cli.without_servers",
    "simulate_dag": "portal.cli.with_private_database",
    "send_log": "portal.cli.send_log",
    "restore": "portal.cli.backups.restoring",
}
#: Commands that with this word need no portal: it may be gone.
WITHOUT_PORTAL = {"backup": "--check"}


def main() -> None:
    if importlib.util.find_spec("django") is None:
        sys.exit(
            f"Pilotage is not installed for {sys.executable}: call it by .venv/bin/python, which "
            "`make setup` prepares."
        )
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    command = sys.argv[1] if len(sys.argv) > 1 else "help"
    if command in BEFORE_DJANGO:
        sys.exit(importlib.import_module(BEFORE_DJANGO[command]).main(sys.argv[2:]))
    if WITHOUT_PORTAL.get(command) in sys.argv[2:]:
        sys.exit(importlib.import_module("portal.cli.without_servers").main(sys.argv[2:]))
    if command in {"help", "--help", "-h"} and len(sys.argv) <= 2:
        sys.stdout.write(
            "[pilotage]\n"
            "    up     start the portal with its servers; Ctrl-C stops all\n"
            "    demo   start the portal and run the example production\n"
            "    restore   fill an empty installation from a backup\n"
        )
    _run(command)


def _run(command: str) -> None:
    """Run a command of Django; where there is no portal to ask, say so in a line."""
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, connection

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"{command}: {error}")
    except OperationalError as error:
        if connection.connection is not None:
            raise
        reason = str(error).strip().partition("\n")[0]
        sys.exit(
            f"{command}: the portal's database does not answer. Is the portal running? "
            f"`manage.py up` starts it. ({reason})"
        )


if __name__ == "__main__":
    main()

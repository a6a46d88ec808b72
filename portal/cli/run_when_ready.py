"""Wrapper that waits for database, broker and, if asked, migrated tables, then becomes a command.

    python -m portal.cli.run_when_ready [--migrated] NAME -- COMMAND...

Does not load Django: every program of the portal starts through here, and again after each
crash.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from portal.cli.state_directory import StateDirectory
from portal.cli.steps import Steps
from portal.embedded.readiness import POLL_S, NotReady, wait_for_postgres, wait_for_redis

TIMEOUT_S = 60


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="run_when_ready")
    parser.add_argument("--migrated", action="store_true", help="wait for migrated tables as well")
    parser.add_argument("name", help="of the program, for who waits for its start")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(arguments)
    state_dir = StateDirectory.from_environment()
    try:
        wait_for_postgres(
            _address("DATABASE_URL", state_dir.run / "database.url"), timeout_s=TIMEOUT_S
        )
        wait_for_redis(_address("REDIS_URL", state_dir.run / "redis.url"), timeout_s=TIMEOUT_S)
        if options.migrated:
            _wait_for_file(state_dir.is_migrated)
        else:
            Steps(state_dir).tell("database and broker answer")
        Steps(state_dir).tell(f"starting {options.name}")
    except NotReady as error:
        sys.stderr.write(f"{error}\n")
        return 1
    os.execvp(options.command[0], options.command)


def _address(name: str, file: Path) -> str:
    return os.environ.get(name) or file.read_text(encoding="utf-8").strip()


def _wait_for_file(path: Path) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not path.exists():
        if time.monotonic() > deadline:
            raise NotReady("the tables are not migrated yet; see the log of the program `migrate`")
        time.sleep(POLL_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

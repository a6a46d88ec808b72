"""Programs of PostgreSQL that dump and restore a database, of the wheel of the embedded server.

The password goes through the environment: others of the host see command lines. They end with the
process that started them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from portal.cli.backups.manifest import BackupFault
from portal.cli.backups.progress import Progress, Tell
from portal.embedded.postgres import PostgresUnusable, program

_LOOK_S = 0.2
#: Tables and indexes that are restored side by side.
_JOBS = 2
_MOST_TOLD = 2000


def environment_of(database: Mapping[str, Any]) -> dict[str, str]:
    """Variables by which the programs find a database of Django's settings."""
    names = {"HOST": "PGHOST", "PORT": "PGPORT", "USER": "PGUSER", "PASSWORD": "PGPASSWORD"}
    names["NAME"] = "PGDATABASE"
    return {short: str(database[name]) for name, short in names.items() if database.get(name)}


def environment_of_url(url: str) -> dict[str, str]:
    """Variables by which the programs find a database by its address."""
    parts = urlsplit(url)
    return environment_of(
        {
            "HOST": parts.hostname, "PORT": parts.port, "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""), "NAME": unquote(parts.path.lstrip("/")),
        }
    )  # fmt: skip


def dump(target: Path, *, snapshot: str, environment: Mapping[str, str], tell: Tell) -> None:
    """Dump the database as an exported snapshot shows it. Raises BackupFault."""
    words = ["--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}"]
    _run("pg_dump", [*words, f"--file={target}"], environment, tell, grows=target)


def restore(source: Path, *, environment: Mapping[str, str], tell: Tell) -> None:
    """Fill an empty database from a dump. Raises BackupFault at its first error."""
    words = ["--no-owner", "--no-privileges", "--exit-on-error", f"--jobs={_JOBS}"]
    words += [f"--dbname={environment['PGDATABASE']}", str(source)]
    _run("pg_restore", words, environment, tell)


def contents_of_dump(source: Path) -> str:
    """The list of what a dump has. Raises BackupFault where it is none."""
    return _run("pg_restore", ["--list", str(source)], {}, lambda line: None)


def _run(
    name: str, words: Sequence[str], environment: Mapping[str, str], tell: Tell,
    grows: Path | None = None,
) -> str:  # fmt: skip
    try:
        command = ["setpriv", "--pdeathsig", "TERM", "--", str(program(name)), *words]
    except PostgresUnusable as error:
        raise BackupFault(str(error)) from None
    progress = Progress(name, tell)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", env=os.environ | environment,
    ) as process:  # fmt: skip
        try:
            said = _waited_for(process, progress, grows)
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        raise BackupFault(f"{name} failed: {said.strip()[-_MOST_TOLD:]}")
    return said


def _waited_for(process: subprocess.Popen[str], progress: Progress, grows: Path | None) -> str:
    seen = 0
    while True:
        try:
            return process.communicate(timeout=_LOOK_S)[0]
        except subprocess.TimeoutExpired:
            now = grows.stat().st_size if grows is not None and grows.exists() else 0
            progress.add(now - seen, count=0)
            seen = now

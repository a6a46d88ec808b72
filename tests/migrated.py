"""Template database with all migrations, of which every test process makes its own as a copy.

To migrate takes as long as hundreds of tests. It is done once for all processes of a run, and its
result is kept as a dump in the cache folder for every run with the same migrations.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from portal.embedded.postgres import program
from tests.batch_systems.debian_root import cache_folder
from tests.batch_systems.services import FOLDER_VARIABLE, locked

#: The database that is copied; nobody stays connected to it, or it could not be.
NAME = "migrated"
#: Dumps of so many states of the migrations are kept.
_KEPT_DUMPS = 20
_ROOT = Path(__file__).parents[1]


def ensure_migrated() -> str:
    """Make the database on the run's own server, unless it is there; return its name."""
    with locked(Path(os.environ[FOLDER_VARIABLE], f"{NAME}.lock")):
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [NAME])
            if found.fetchone() is not None:
                return NAME
            connection.execute(f"CREATE DATABASE {NAME}")
        fill(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{NAME}").geturl())
    return NAME


def fill(url: str) -> None:
    """Make all tables in an empty database of any server."""
    dump = cache_folder() / f"migrated-{_digest()}.sql"
    if dump.exists():
        dump.touch()
        _run(program("psql"), "-q", "-X", "-v", "ON_ERROR_STOP=1", "-1", "-f", dump, url)
    else:
        _run(sys.executable, "manage.py", "migrate", "-v", "0", database_url=url)
        _keep(dump, url)


def _keep(dump: Path, url: str) -> None:
    """Write the dump; it appears by rename, for others may look for it now."""
    dump.parent.mkdir(parents=True, exist_ok=True)
    fresh = dump.with_suffix(f".{os.getpid()}")
    _run(program("pg_dump"), "--no-owner", "-f", fresh, url)
    fresh.rename(dump)
    dumps = sorted(dump.parent.glob("migrated-*.sql"), key=lambda each: each.stat().st_mtime)
    for old in dumps[:-_KEPT_DUMPS]:
        old.unlink(missing_ok=True)


def _digest() -> str:
    """What decides how the database looks: the migrations, and the packages that bring others."""
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(f"{path.relative_to(_ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _sources() -> Iterator[Path]:
    yield _ROOT / "requirements.txt"
    for layer in ("portal", "wms"):
        yield from sorted((_ROOT / layer).glob("*/migrations/*.py"))


def _run(*words: str | Path, database_url: str = "") -> None:
    """Run a program to its end; what it says is told only where it fails."""
    environment = os.environ | ({"DATABASE_URL": database_url} if database_url else {})
    done = subprocess.run(
        words, cwd=_ROOT, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed:\n{done.stdout}{done.stderr}")

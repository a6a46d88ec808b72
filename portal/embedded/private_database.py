"""Temporary PostgreSQL server for one command, with a database copied from a prepared template.

The template has all tables; it is made at first use and kept. The copy is in memory where possible,
does not wait for a disk, and is removed at the end. Also the environment variables by which a
command uses it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portal.embedded.memory import short_lived_folder
from portal.embedded.ports import free_ports
from portal.embedded.postgres import MAJOR, Postgres, PostgresUnusable
from portal.embedded.readiness import wait_for_postgres

_BASE = Path(__file__).resolve().parent.parent.parent
_SETTINGS = {
    "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
    "max_connections": "10", "shared_buffers": "64MB", "max_wal_senders": "0",
    "wal_level": "minimal", "autovacuum": "off",
}  # fmt: skip
_ROOM_BYTES = 1024 * 1024 * 1024
_TIMEOUT_S = 60


@contextmanager
def private_database(kept: Path, *, within: Path | None = None) -> Iterator[tuple[str, Path]]:
    """Address of an empty database with all tables, and a folder; both are removed at the end.

    What is worth keeping for the next time is kept in the folder `kept`. With `within`, the folder
    is made there, for somebody who removes it should this process be killed.
    """
    template = _template(kept)
    if within is None:
        folder = short_lived_folder(room_bytes=_ROOM_BYTES)
    else:
        folder = Path(tempfile.mkdtemp(prefix="pilotage-", dir=within))
    try:
        shutil.copytree(template / "postgres", folder / "postgres")
        with _running(folder) as url:
            yield url, folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _template(kept: Path) -> Path:
    """The folder with the prepared tables; it appears by rename, when it is complete."""
    target = kept / _fingerprint()
    if target.is_dir():
        return target
    sys.stderr.write("Preparing the private database; this is done once ...\n")
    kept.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = Path(tempfile.mkdtemp(prefix="new-", dir=kept))
    try:
        with _running(fresh) as url:
            _migrate(url, fresh)
        try:
            fresh.rename(target)
        except OSError:
            # Another command was faster; its folder is as good.
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    for old in kept.iterdir():
        if old != target and not old.name.startswith("new-"):
            shutil.rmtree(old, ignore_errors=True)
    return target


def _fingerprint() -> str:
    """Names what the tables are made by: the migrations, and the version of PostgreSQL."""
    digest = hashlib.sha256(MAJOR.encode())
    for path in sorted(_BASE.glob("wms/*/migrations/*.py")):
        digest.update(str(path.relative_to(_BASE)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _migrate(url: str, folder: Path) -> None:
    environment = os.environ | surroundings(url, folder)
    words = [sys.executable, str(_BASE / "manage.py"), "migrate", "--verbosity=0", "--skip-checks"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, cwd=_BASE)
    if done.returncode != 0:
        raise PostgresUnusable(f"its tables cannot be made:\n{done.stdout}{done.stderr}")


def surroundings(url: str, folder: Path) -> dict[str, str]:
    """Environment variables by which a command uses this database and no other server or folder."""
    return {
        "DATABASE_URL": url,
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "PILOTAGE_SECRET_KEY": secrets.token_urlsafe(48),
        "PILOTAGE_VAR": str(folder),
    }


@contextmanager
def _running(folder: Path) -> Iterator[str]:
    [port] = free_ports(1)
    postgres = Postgres.at(folder / "postgres", port)
    postgres.prepare()
    with (folder / "postgres.log").open("wb") as log:
        # A session of its own keeps a Ctrl-C away from the server: it is stopped last.
        server = subprocess.Popen(
            postgres.command(**_SETTINGS), stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        wait_for_postgres(postgres.url, timeout_s=_TIMEOUT_S)
        yield postgres.url
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()

"""Temporary PostgreSQL and Redis servers, for a test run, a benchmark or one command.

    python -m portal.embedded.temporary COMMAND...

Nothing of them is left afterwards.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from portal.embedded.memory import short_lived_folder
from portal.embedded.ports import free_ports
from portal.embedded.postgres import Postgres
from portal.embedded.readiness import wait_for_postgres, wait_for_redis
from portal.embedded.redis import Redis

#: Durability is of no use for data that are thrown away.
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_ROOMY = {"max_connections": "200", "shared_buffers": "256MB", "max_wal_size": "4GB"}
#: In memory only where that much is free, for databases, their log of changes and its spare.
_ROOM_BYTES = 8 * 1024**3


class RunningRedis(NamedTuple):
    """A server, and its process."""

    server: Redis
    process: subprocess.Popen[bytes]


@contextmanager
def running_redis(folder: Path, **limits: str) -> Iterator[RunningRedis]:
    """A server that runs inside the `with` block, with some of its limits changed."""
    server = Redis.at(folder)
    server.prepare()
    with (folder / "redis.conf").open("a") as configuration:
        configuration.writelines(f"{name} {value}\n" for name, value in limits.items())
    process = _start(folder.with_name("redis.log"), server.command())
    try:
        wait_for_redis(server.url, timeout_s=30)
        yield RunningRedis(server, process)
    finally:
        _stop(process, signal.SIGTERM)
        shutil.rmtree(server.socket.parent, ignore_errors=True)


class TemporaryServers:
    """A context manager: both servers run inside the `with` block, in a folder of their own.

    The servers also end when this process is killed; only the folder then stays behind, until the
    next ones are started. For measurements `is_durable` makes PostgreSQL wait for its disk, as in a
    real installation; else the folder is in memory where there is room.
    """

    def __init__(self, *, is_durable: bool = False) -> None:
        self._is_durable = is_durable
        self._settings = _ROOMY if is_durable else _ROOMY | _NOT_DURABLE
        self.folder = Path()
        self.database_url = ""
        self.redis_url = ""
        self.redis: subprocess.Popen[bytes]
        self._cleanup = ExitStack()

    def __enter__(self) -> TemporaryServers:
        with ExitStack() as cleanup:
            self.folder = self._new_folder()
            cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
            (port,) = free_ports(1)
            postgres = Postgres.at(self.folder / "postgres", port)
            postgres.prepare()
            redis, self.redis = cleanup.enter_context(running_redis(self.folder / "redis"))
            cleanup.callback(
                _stop,
                _start(self.folder / "postgres.log", postgres.command(**self._settings)),
                signal.SIGINT,
            )
            self.database_url, self.redis_url = postgres.url, redis.url
            wait_for_postgres(self.database_url, timeout_s=30)
            self._cleanup = cleanup.pop_all()
        return self

    def _new_folder(self) -> Path:
        if self._is_durable:
            return Path(tempfile.mkdtemp(prefix="pilotage-"))
        return short_lived_folder(room_bytes=_ROOM_BYTES)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cleanup.close()


def _start(log_file: Path, command: list[str]) -> subprocess.Popen[bytes]:
    with log_file.open("wb") as log:
        # A session of their own keeps a Ctrl-C away from the servers: they are stopped last.
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip


def _stop(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    process.send_signal(how)
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main(command: list[str]) -> int:
    """Run `command` with DATABASE_URL and REDIS_URL of temporary servers, unless both are set."""
    environment = {"PILOTAGE_SECRET_KEY": secrets.token_urlsafe(32)} | os.environ
    if "DATABASE_URL" in environment and "REDIS_URL" in environment:
        return subprocess.run(command, env=environment).returncode
    with TemporaryServers() as servers:
        environment["DATABASE_URL"] = servers.database_url
        environment["REDIS_URL"] = servers.redis_url
        return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

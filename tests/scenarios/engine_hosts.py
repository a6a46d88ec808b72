"""Two hosts of engine workers: network namespaces, each with a wire to the servers that can be cut.

The servers' own addresses lead nowhere from there. Relays, one at the other end of each wire, pass
on what workers say to PostgreSQL and Redis; as those do, they give up a connection that is silent
and does not answer.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from portal.cli.state_directory import BASE

_Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
#: After so long a peer that does not answer is given up.
_SILENT_S = 6
_WORKER = (
    sys.executable, "-m", "celery", "--app", "portal", "worker", "--beat", "--concurrency", "2",
    "--queues", "engine", "--pidfile", "", "--loglevel", "WARNING",
    "--without-gossip", "--without-mingle",
)  # fmt: skip


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"ip {' '.join(words)}: {done.stderr}")


@dataclass
class WorkerHost:
    """A namespace, its wire, and the worker of the engine that runs in it."""

    name: str
    wire: str
    environment: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Start the worker."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.name, *_WORKER], cwd=BASE, env=self.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """End the worker and its children by SIGKILL."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(timeout=30)

    def cut(self) -> None:
        """Cut the wire: what is sent is lost, and nobody is told."""
        _ip("link", "set", self.wire, "down")

    def mend(self) -> None:
        """Join the wire again."""
        _ip("link", "set", self.wire, "up")


@contextmanager
def worker_hosts(
    folder: Path, database: Mapping[str, str | int], redis_url: str, *, count: int = 2
) -> Iterator[list[WorkerHost]]:
    """Hosts with wires, whose workers are to be started; nothing of them is left behind the block.

    `database` are Django's settings of it.
    """
    redis = urlsplit(redis_url)
    to_redis = redis.path if redis.scheme == "unix" else (redis.hostname or "", redis.port or 6379)
    to_database = str(database["HOST"]), int(database["PORT"])
    user = f"{database['USER']}:{quote(str(database['PASSWORD']))}"
    account = f"{redis.username or ''}:{quote(unquote(redis.password or ''))}"
    with ExitStack() as cleanup:
        hosts = []
        for number in range(1, count + 1):
            name, wire = f"engine{number}-{os.getpid()}", f"e{number}-{os.getpid()}"
            cleanup.callback(_remove, name)
            _wire(name, wire, number)
            outside = f"10.214.{number}.1"
            ports = cleanup.enter_context(_relays(outside, [to_database, _unquoted(to_redis)]))
            environment = os.environ | {
                "DATABASE_URL": f"postgresql://{user}@{outside}:{ports[0]}/{database['NAME']}",
                "REDIS_URL": f"redis://{account}@{outside}:{ports[1]}/0",
                "DJANGO_SETTINGS_MODULE": "portal.settings",
            }
            hosts.append(WorkerHost(name, wire, environment, folder / f"{name}.log"))
            cleanup.callback(hosts[-1].kill)
        yield hosts


def _unquoted(target: str | tuple[str, int]) -> str | tuple[str, int]:
    """Target of a relay: the path of a socket as it is, or host and port."""
    return unquote(target) if isinstance(target, str) else target


def _remove(name: str) -> None:
    # Its end of the wire goes with it, and with that the other one.
    with suppress(AssertionError):
        _ip("netns", "del", name)


def _wire(name: str, wire: str, number: int) -> None:
    _ip("netns", "add", name)
    _ip("-n", name, "link", "set", "lo", "up")
    _ip("link", "add", wire, "type", "veth", "peer", "name", "servers", "netns", name)
    _ip("addr", "add", f"10.214.{number}.1/24", "dev", wire)
    _ip("link", "set", wire, "up")
    _ip("-n", name, "addr", "add", f"10.214.{number}.2/24", "dev", "servers")
    _ip("-n", name, "link", "set", "servers", "up")


@contextmanager
def _relays(address: str, targets: Sequence[str | tuple[str, int]]) -> Iterator[list[int]]:
    """Ports at an address behind which connections are passed on to the targets."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    made = asyncio.run_coroutine_threadsafe(_listening(address, targets), loop)
    servers = made.result(timeout=30)
    try:
        yield [server.sockets[0].getsockname()[1] for server in servers]
    finally:
        asyncio.run_coroutine_threadsafe(_stopped(servers), loop).result(timeout=30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=30)
        loop.close()


async def _listening(
    address: str, targets: Sequence[str | tuple[str, int]]
) -> list[asyncio.Server]:
    return [await asyncio.start_server(_serving(target), address, 0) for target in targets]


async def _stopped(servers: Sequence[asyncio.Server]) -> None:
    for server in servers:
        server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _serving(target: str | tuple[str, int]) -> _Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _give_up_silent(writer.get_extra_info("socket"))
        try:
            opened = (
                asyncio.open_unix_connection(target)
                if isinstance(target, str)
                else asyncio.open_connection(*target)
            )
            to_reader, to_writer = await opened
        except OSError:
            writer.close()
            return
        both = [
            asyncio.ensure_future(_pump(reader, to_writer)),
            asyncio.ensure_future(_pump(to_reader, writer)),
        ]
        # A task that ends as cancelled would be told of as a fault.
        with suppress(asyncio.CancelledError):
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in both:
            task.cancel()
        writer.close()
        to_writer.close()

    return serve


def _give_up_silent(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SILENT_S // 2)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _SILENT_S)


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()

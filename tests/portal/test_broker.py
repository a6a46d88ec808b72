"""Celery on a broker whose account may run no scripts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from django.conf import settings
from kombu import Connection, Exchange, Queue
from redis.exceptions import LockNotOwnedError

from portal.celery import app
from portal.config.broker import PlainClient, Transport, refresh_binding, sweep_bindings
from portal.config.redis_urls import broker_url
from portal.embedded.temporary import running_redis

ROOT = Path(__file__).resolve().parents[2]
_TAKES_AND_DIES = """
import os, signal, sys
from kombu import Connection, Exchange, Queue
import portal.config.broker
queue = Queue("abandoned", Exchange("abandoned"), routing_key="abandoned")
assert queue(Connection(sys.argv[1]).channel()).get() is not None
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server of this module's own."""
    with running_redis(tmp_path_factory.mktemp("broker") / "redis") as found:
        yield found.server.url


@pytest.fixture
def client(own_redis: str) -> Iterator[PlainClient]:
    with PlainClient.from_url(own_redis) as found:
        yield found


@pytest.mark.parametrize(
    ("url", "broker"),
    [
        ("redis://:a%2Fb@cache:6379/0", "redis://:a%2Fb@cache:6379/0"),
        ("rediss://u:p@cache/3", "rediss://u:p@cache/3"),
        ("unix://u:p%40@/a/b%20c?db=0", "redis+socket://u:p%40@/a/b%20c?virtual_host=0"),
        ("unix://@/a/b", "redis+socket://@/a/b?virtual_host=0"),
    ],
)
def test_the_brokers_address_is_made_of_the_one_of_redis(url: str, broker: str) -> None:
    assert broker_url(url) == broker


def test_every_address_of_redis_gets_the_transport_without_scripts() -> None:
    for url in ("redis://cache/0", "rediss://cache/0", "redis+socket:///a/b?virtual_host=0"):
        assert isinstance(Connection(url).transport, Transport)


@pytest.mark.process
def test_a_lock_is_released_by_who_holds_it_only(client: PlainClient) -> None:
    mine, other = client.lock("a lock", timeout=60), client.lock("a lock", timeout=60)

    assert mine.acquire(blocking=False)
    assert not other.acquire(blocking=False)
    client.set("a lock", "somebody else's")
    with pytest.raises(LockNotOwnedError):
        mine.release()
    assert client.get("a lock") == b"somebody else's"
    client.delete("a lock")
    assert other.acquire(blocking=False)
    other.release()
    assert client.get("a lock") is None


@pytest.mark.process
def test_a_message_whose_receiver_died_is_given_to_another(own_redis: str) -> None:
    queue = Queue("abandoned", Exchange("abandoned"), routing_key="abandoned")
    options = {"visibility_timeout": 0, "unacked_restore_throttle": 1}
    url = broker_url(own_redis)
    with Connection(url, transport_options=options) as sender:
        sender.Producer().publish({"n": 1}, routing_key="abandoned", declare=[queue])
    # It takes the message and is killed: it says no good-bye.
    dead = [sys.executable, "-c", _TAKES_AND_DIES, url]
    assert subprocess.run(dead, cwd=ROOT).returncode == -signal.SIGKILL

    with Connection(url, transport_options=options) as receiver:
        channel = receiver.channel()
        channel.qos.restore_visible()
        again = queue(channel).get()

    assert again is not None
    assert again.payload == {"n": 1}
    assert again.headers["redelivered"] is True


@pytest.mark.slow
def test_tables_of_exchanges_end_unless_they_are_refreshed_or_permanent(
    client: PlainClient,
) -> None:
    deadlines = "deadlines"
    for exchange, lifetime_ms in (("old", -1), ("kept", -1), ("young", 3_600_000)):
        refresh_binding([f"table.{exchange}", deadlines], ["queue", exchange, lifetime_ms], client)
    client.sadd("permanent.kept", "queue")
    # A deadline is only ever put off.
    refresh_binding(["table.young", deadlines], ["other", "young", -1], client)

    swept = sweep_bindings([deadlines], ["table.", "permanent.", 100], client)

    assert swept == 2
    assert client.exists("table.old") == 0
    assert client.exists("table.kept") == 1
    assert client.smembers("table.young") == {b"queue", b"other"}
    assert client.zrange(deadlines, 0, -1) == [b"young"]


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[str]:
    """A worker's name, while it runs on the tests' broker."""
    name = f"of-a-test-{os.getpid()}@{socket.gethostname()}"
    command = ["-m", "celery", "--app", "portal", "worker", "--pool", "solo", "--hostname", name]
    quiet = ["--queues", name, "--without-gossip", "--without-mingle", "--loglevel", "INFO"]
    with (tmp_path / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", *command, *quiet], cwd=ROOT, stdout=log, stderr=log
        )
    yield name
    process.terminate()
    process.wait()
    text = (tmp_path / "worker.log").read_text()
    assert "Connected to" in text
    assert "no permissions" not in text
    password = urlsplit(settings.REDIS_URL).password
    assert password is None or password not in text


def _answer(ask: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if answer := ask():
            return answer
    raise AssertionError("nobody answered")


@pytest.mark.process
def test_workers_are_asked_and_told_by_the_broker(worker: str) -> None:
    asked = {"destination": [worker], "timeout": 5}
    _answer(lambda: app.control.ping(**asked))

    inspect = app.control.inspect(**asked)
    assert "wms.dags.scripts.run" in inspect.registered()[worker]
    assert inspect.active() == {worker: []}
    [revoked] = app.control.revoke("a-task", reply=True, **asked)
    assert revoked[worker]["ok"]
    assert inspect.revoked() == {worker: ["a-task"]}

    with redis.Redis.from_url(settings.REDIS_URL) as client:
        left = client.smembers("_kombu.binding.reply.celery.pidbox")
    assert not [each for each in left if app.thread_oid.encode() in each]

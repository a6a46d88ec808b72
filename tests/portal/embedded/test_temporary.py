from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time

import psycopg
import pytest
import redis

from portal.embedded.temporary import TemporaryServers

pytestmark = pytest.mark.process

ENDLESS = """
import signal
from portal.embedded.temporary import TemporaryServers
with TemporaryServers() as servers:
    print(servers.database_url, servers.redis_url, servers.folder, flush=True)
    signal.pause()
"""


def _ends_within(timeout_s: float, is_ended) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if is_ended():
            return True
        time.sleep(0.05)
    return False


def _refuses_connections(database_url: str, redis_url: str) -> bool:
    try:
        psycopg.connect(database_url, connect_timeout=1).close()
    except psycopg.OperationalError:
        pass
    else:
        return False
    with redis.Redis.from_url(redis_url, socket_timeout=1) as client:
        try:
            client.ping()
        except redis.ConnectionError:
            return True
    return False


def test_servers_answer_inside_the_block_and_are_gone_with_their_folder_after_it():
    with TemporaryServers() as servers:
        with psycopg.connect(servers.database_url) as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("pilotage",)
        connection.close()
        with redis.Redis.from_url(servers.redis_url) as client:
            assert client.ping()

    assert not servers.folder.exists()
    assert _refuses_connections(servers.database_url, servers.redis_url)


def test_a_wrong_password_is_refused():
    with TemporaryServers() as servers:
        wrong = servers.database_url.replace("pilotage:", "pilotage:x", 1)

        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(wrong)


def test_servers_end_when_their_starter_is_killed():
    starter = subprocess.Popen(
        [sys.executable, "-c", ENDLESS],
        stdout=subprocess.PIPE,
        text=True,
    )
    database_url, redis_url, folder = starter.stdout.readline().split()

    starter.send_signal(signal.SIGKILL)
    starter.communicate()

    assert _ends_within(10, lambda: _refuses_connections(database_url, redis_url))
    shutil.rmtree(folder)

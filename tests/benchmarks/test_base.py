from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import psycopg
import pytest
import redis

from benchmarks import base

pytestmark = pytest.mark.process


def _databases(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {name for (name,) in connection.execute("SELECT datname FROM pg_database")}


def _scratch_databases(url: str) -> set[str]:
    return {name for name in _databases(url) if name.startswith("pilotage_benchmark_")}


def test_on_given_servers_a_benchmark_works_in_places_of_its_own_and_removes_them():
    before = dict(os.environ)

    with base.scratch_servers():
        inside = dict(os.environ)
        with psycopg.connect(inside["DATABASE_URL"]) as connection:
            connection.execute("CREATE TABLE left_behind ()")
        with redis.Redis.from_url(inside["REDIS_URL"]) as client:
            client.set("left", "behind")
        Path(inside["PILOTAGE_VAR"], "left").touch()

    assert inside["DATABASE_URL"] != before["DATABASE_URL"]
    assert inside["REDIS_URL"] != before["REDIS_URL"]
    assert dict(os.environ) == before
    assert not Path(inside["PILOTAGE_VAR"]).exists()
    name = inside["DATABASE_URL"].rpartition("/")[2]
    assert name not in _scratch_databases(before["DATABASE_URL"])
    with (
        redis.Redis.from_url(inside["REDIS_URL"]) as client,
        pytest.raises(redis.ConnectionError),
    ):
        client.ping()


def test_a_benchmark_prints_one_json_object(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks.nothing", "--quick", "--json"])

    base.main("nothing", lambda is_quick: {"is_quick": is_quick}, "Measure nothing.")

    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert told["benchmark"] == "nothing"
    assert told["quick"] is True
    assert told["is_quick"] is True


def test_the_reference_reads_and_commits_and_leaves_nothing_behind():
    with base.scratch_servers():
        found = base.reference_ms(20)
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            left = connection.execute("SELECT to_regclass('reference')").fetchone()

    assert left == (None,)
    assert found["read_ms"] > 0
    assert found["commit_ms"] > 0

"""Frame of the benchmarks: command line, scratch servers, child processes, result as JSON.

`reference_ms` times a prepared read and a commit, to compare machines by. A benchmark is a module
with a function `measure(is_quick) -> dict` and, at its end,

    if __name__ == "__main__":
        base.main("NAME", measure, __doc__)
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import secrets
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from portal.embedded.temporary import TemporaryServers, running_redis

Measure = Callable[[bool], Mapping[str, Any]]

#: Names a database of the given server, to which nobody is connected, to begin with a copy of.
TEMPLATE_VARIABLE = "PILOTAGE_BENCHMARK_TEMPLATE"


def main(name: str, measure: Measure, description: str | None) -> None:
    """Run one benchmark from the command line and print what it found."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument("--quick", action="store_true", help="a small run, to see that it works")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    began = time.monotonic()
    with scratch_servers():
        results = measure(options.quick)
    found = {
        "benchmark": name,
        "quick": options.quick,
        "seconds": round(time.monotonic() - began, 1),
        "host": {"cpus": os.cpu_count(), "python": platform.python_version()},
        **results,
    }
    sys.stdout.write(json.dumps(found, indent=None if options.json else 2, default=str) + "\n")


@contextmanager
def scratch_servers() -> Iterator[None]:
    """Set DATABASE_URL, REDIS_URL and PILOTAGE_VAR to places that exist only inside the block."""
    before = dict(os.environ)
    with ExitStack() as cleanup:
        cleanup.callback(_restore_environment, before)
        if "DATABASE_URL" in before and "REDIS_URL" in before:
            database_url = cleanup.enter_context(_scratch_database(before["DATABASE_URL"]))
            folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="pilotage-")))
            redis_url = cleanup.enter_context(running_redis(folder / "redis")).server.url
        else:
            servers = cleanup.enter_context(TemporaryServers(is_durable=True))
            database_url, redis_url = servers.database_url, servers.redis_url
        var = tempfile.mkdtemp(prefix="pilotage-benchmark-")
        cleanup.callback(shutil.rmtree, var, ignore_errors=True)
        os.environ |= {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "PILOTAGE_VAR": var,
            "PILOTAGE_SECRET_KEY": secrets.token_urlsafe(32),
            # What is measured is not how soon somebody is refused.
            "PILOTAGE_API_RATE_TOKEN": "off",
            "PILOTAGE_API_RATE_USER": "off",
            "PILOTAGE_API_RATE_READ": "off",
            "PILOTAGE_API_RATE_SUBMIT": "off",
            "PILOTAGE_API_RATE_CONTROL": "off",
            "DJANGO_SETTINGS_MODULE": "portal.settings",
        }
        yield


def load_django() -> None:
    """Load the settings in this process; only now, since they read the scratch addresses."""
    import django

    django.setup()


def in_a_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function of a module, called in a fresh process that ends with it."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_told, (work, *arguments))


def _told(work: Callable[..., Any], *arguments: Any) -> Any:
    """A process of a pool that leaves by itself is waited for without end: its word is told."""
    try:
        return work(*arguments)
    except SystemExit as left:
        raise RuntimeError(str(left)) from left


def reference_ms(count: int = 500) -> dict[str, float]:
    """Reference to compare machines by: medians in milliseconds.

    `read_ms` is a prepared read of one row by its primary key, `commit_ms` a transaction that
    writes one row and waits for the disk.
    """
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("CREATE TABLE reference (id int PRIMARY KEY, value int)")
        connection.execute("INSERT INTO reference SELECT n, 0 FROM generate_series(1, 1000) AS n")
        statements = {
            "read_ms": "SELECT value FROM reference WHERE id = %s",
            "commit_ms": "UPDATE reference SET value = value + 1 WHERE id = %s",
        }
        medians = {
            name: _median_ms(connection, statement, count) for name, statement in statements.items()
        }
        connection.execute("DROP TABLE reference")
    return medians


def _median_ms(connection: psycopg.Connection[Any], statement: Any, count: int) -> float:
    times_ms = []
    for number in range(count):
        began_s = time.perf_counter()
        connection.execute(statement, [1 + number % 1000], prepare=True)
        times_ms.append(1000 * (time.perf_counter() - began_s))
    return round(statistics.median(times_ms), 3)


def close_connections() -> None:
    """Let go of the scratch database, which is dropped when the benchmark ends."""
    from django.db import connections

    connections.close_all()


def _restore_environment(before: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(before)


@contextmanager
def _scratch_database(url: str) -> Iterator[str]:
    name = sql.Identifier(f"pilotage_benchmark_{secrets.token_hex(6)}")
    template = sql.Identifier(os.environ.get(TEMPLATE_VARIABLE, "template0"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(name, template))
        try:
            yield urlunsplit(urlsplit(url)._replace(path=f"/{name.as_string().strip(chr(34))}"))
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))

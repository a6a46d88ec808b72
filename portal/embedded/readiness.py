"""Waiting until a PostgreSQL or Redis server answers; `NotReady` is raised after a time limit."""

from __future__ import annotations

import time

import psycopg
import redis

#: Between two attempts; short, because people wait for it.
POLL_S = 0.1


class NotReady(Exception):
    """A server did not answer in time; the text is its last error."""


def wait_for_postgres(url: str, *, timeout_s: float = 60) -> None:
    """Return as soon as a connection to the database succeeds."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
            return
        except psycopg.OperationalError as error:
            if time.monotonic() > deadline:
                raise NotReady(f"PostgreSQL does not answer: {error}") from error
        time.sleep(POLL_S)


def wait_for_redis(url: str, *, timeout_s: float = 60) -> None:
    """Return as soon as the server answers a ping."""
    deadline = time.monotonic() + timeout_s
    with redis.Redis.from_url(url, socket_connect_timeout=5, socket_timeout=5) as client:
        while True:
            try:
                client.ping()
                return
            except redis.RedisError as error:
                if time.monotonic() > deadline:
                    raise NotReady(f"Redis does not answer: {error}") from error
            time.sleep(POLL_S)

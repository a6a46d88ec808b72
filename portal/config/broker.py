"""Celery's transport by Redis without Lua scripts: locks and queue tables by plain commands.

The account of the broker may not run scripts, since faults of the interpreter have let scripts out
of the server more than once. The transport uses three, for locks and for the tables of queues that
expire; here the same is done by commands, in transactions that begin anew when a key was changed
meanwhile. Importing this module puts it in the place of the transport.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import redis
from kombu.transport import TRANSPORT_ALIASES
from kombu.transport import redis as kombu_redis
from redis.exceptions import LockNotOwnedError
from redis.lock import Lock


class PlainLock(Lock):
    """A lock that is released without a script."""

    def register_scripts(self) -> None:
        """Do nothing: this transport has no scripts."""

    def do_release(self, expected_token: Any) -> None:
        def release(pipe: Any) -> bool:
            is_held = pipe.get(self.name) == expected_token
            pipe.multi()
            if is_held:
                pipe.delete(self.name)
            return is_held

        if not self.redis.transaction(release, self.name, value_from_callable=True):
            raise LockNotOwnedError("the lock is no longer owned", lock_name=str(self.name))


class PlainClient(redis.Redis):
    """A client whose locks need no script."""

    def lock(self, *args: Any, **kwargs: Any) -> Lock:
        return super().lock(*args, lock_class=PlainLock, **kwargs)


def refresh_binding(keys: Sequence[str], args: Sequence[Any], client: redis.Redis) -> None:
    """Enter a queue into an exchange's table, and put off the table's end."""
    (table, deadlines), (member, exchange, lifetime_ms) = keys, args
    client.sadd(table, member)
    # Clocks of hosts differ by seconds, the shortest lifetime is an hour.
    client.zadd(deadlines, {exchange: _now_ms() + lifetime_ms}, gt=True)


def sweep_bindings(keys: Sequence[str], args: Sequence[Any], client: redis.Redis) -> int:
    """Remove the tables of exchanges whose end has come; how many ends there were."""
    (deadlines,), (tables, permanents, limit) = keys, args
    overdue = client.zrange(deadlines, 0, _now_ms(), byscore=True, offset=0, num=limit)
    for each in overdue:
        exchange = each.decode()

        def remove(pipe: Any, exchange: str = exchange) -> None:
            deadline = pipe.zscore(deadlines, exchange)
            is_permanent = pipe.exists(permanents + exchange)
            pipe.multi()
            if deadline is None or deadline > _now_ms():
                return
            if not is_permanent:
                pipe.delete(tables + exchange)
            pipe.zrem(deadlines, exchange)

        client.transaction(remove, deadlines, permanents + exchange)
    return len(overdue)


def _now_ms() -> int:
    return int(time.time() * 1000)


class Channel(kombu_redis.Channel):
    """A channel that sends no script."""

    def _get_client(self) -> type[redis.Redis]:
        super()._get_client()
        return PlainClient

    @cached_property
    def _refresh_binding(self) -> Any:
        return refresh_binding

    @cached_property
    def _sweep_bindings(self) -> Any:
        return sweep_bindings


class Transport(kombu_redis.Transport):
    """The transport of `redis:` and `rediss:` addresses."""

    Channel = Channel


for _scheme in ("redis", "rediss"):
    TRANSPORT_ALIASES[_scheme] = f"{__name__}:Transport"

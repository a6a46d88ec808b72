"""Facts that the self-test asks for: queues, fences, keys, PostgreSQL, clocks, the broker."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.db import connection

from portal.selftest.fences import FencedQueue
from portal.selftest.servers import Broker
from portal.selftest.sql import READ_CLOCK, READ_DURABILITY
from wms.core.errors import PilotageError
from wms.core.key_rotation import lost_count
from wms.dags.scripts.conf import script_conf
from wms.dags.scripts.fence_choice import NoFence, working_fence
from wms.dags.scripts.fences import Sandbox
from wms.dags.scripts.slots import acquired_slot
from wms.pilots.credentials.sealing import NoKey, check_keys
from wms.pilots.selectors import queues_where_found
from wms.sites.fences import Fence
from wms.sites.selectors import configured_queues, runs_here

_TRIAL_LIMIT_S = 60
_BROKER_LIMIT_S = 3.0


def far_queues() -> list[str]:
    """The queues whose worker nodes are other hosts."""
    return [str(each) for each in configured_queues() if not runs_here(each)]


def fenced_queues() -> list[FencedQueue]:
    """All queues that get pilots, with the fence of their payloads."""
    queues = list(configured_queues())
    found = queues_where_found([each.pk for each in queues], Fence.BWRAP)
    return [
        FencedQueue(
            name=str(each),
            fence=each.effective_fence,
            is_settled=each.fence == Fence.AUTO,
            is_local=runs_here(each),
            works_there=each.pk in found,
        )
        for each in queues
    ]


def scripts_fence() -> tuple[str, str]:
    """Fence that works for scripts of nodes here, and the reason where none does."""
    conf = script_conf()
    try:
        with acquired_slot(conf.folder, first_uid=conf.first_uid) as slot:
            return working_fence(conf, Sandbox(slot.tmp, slot.tmp, slot.shm, slot.uid)), ""
    except (NoFence, PilotageError, OSError) as error:
        return "", str(error)


def bwrap_trouble() -> str:
    """Why bubblewrap does not work for pilots on this host; empty where it does.

    It is tried in a process of its own: the fence of a pilot is no guest in another program.
    """
    done = subprocess.run(
        [sys.executable, "-m", "portal.selftest.bwrap_trial"],
        cwd=Path(__file__).parents[2], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=_TRIAL_LIMIT_S,
    )  # fmt: skip
    if done.returncode:
        return done.stderr.strip()[-300:] or f"the trial ended with {done.returncode}"
    return done.stdout.strip()


def credential_keys_trouble() -> str:
    """Why nothing can be encrypted with the keys of credentials; empty where it can."""
    try:
        check_keys()
    except NoKey as error:
        return str(error)
    return ""


def lost_secrets() -> dict[str, int]:
    """Number of stored secrets of each kind that no key opens, where there are some."""
    return {kept.what: count for kept, count in lost_count() if count}


def database_settings() -> tuple[int, dict[str, str]]:
    """The version of the database, and those of its settings on which it depends what is kept."""
    with connection.cursor() as cursor:
        cursor.execute(READ_DURABILITY)
        found = dict(cursor.fetchall())
    return int(connection.pg_version), found


def clock_difference() -> tuple[float, float]:
    """Seconds by which this clock is ahead of the database's, and seconds of the round trip."""
    with connection.cursor() as cursor:
        before = time.time()
        cursor.execute(READ_CLOCK)
        [theirs] = cursor.fetchone()
        after = time.time()
    return (before + after) / 2 - theirs, after - before


def broker() -> Broker:
    """Facts about the broker that the portal's account may read. Raises RedisError."""
    client = redis.Redis.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=_BROKER_LIMIT_S,
        socket_timeout=_BROKER_LIMIT_S,
    )
    try:
        # An account may always say hello, whatever else it may not.
        hello = _pairs(client.execute_command("HELLO"))
        name = {"valkey": "Valkey"}.get(hello.get("server", ""), "Redis")
        try:
            info: dict[str, Any] = client.info()
        except redis.exceptions.NoPermissionError:
            return Broker(name, hello.get("version", ""))
        return Broker(
            name,
            hello.get("version", ""),
            may_ask=True,
            writes=bool(info.get("aof_enabled")) or _is_saved(client),
            policy=str(info.get("maxmemory_policy", "")),
        )
    finally:
        client.close()


def _is_saved(client: redis.Redis) -> bool:
    try:
        return bool(client.config_get("save").get("save"))
    except redis.exceptions.NoPermissionError:
        return False


def _pairs(answer: Any) -> dict[str, str]:
    if isinstance(answer, dict):
        return {_text(key): _text(value) for key, value in answer.items()}
    return {_text(key): _text(value) for key, value in zip(answer[::2], answer[1::2], strict=False)}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)

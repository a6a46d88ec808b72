"""Checks of what the portal stands on: database, migrations, control loops, broker.

Each says what is amiss in words that anybody may read: names, states and ages. What a server said
itself goes into the log.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module, util
from typing import Any

import redis
import structlog
from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder

from wms.core.loops import known_loops
from wms.core.selectors import LoopHealth, LoopStatus, loop_statuses

log = structlog.get_logger(__name__)
_BROKER_TIMEOUT_S = 1.5
OK, PENDING, UNAVAILABLE = "ok", "pending", "unavailable"


@dataclass(slots=True)
class Health:
    """State of each part, and what is amiss; nothing is when there are no `reasons`."""

    database: str = UNAVAILABLE
    migrations: str = UNAVAILABLE
    broker: str = UNAVAILABLE
    loops: dict[str, Any] = field(default_factory=dict)
    reasons: list[dict[str, str]] = field(default_factory=list)

    def add(self, check: str, reason: str) -> None:
        """Note what is amiss with a part."""
        self.reasons.append({"check": check, "reason": reason})


def look(now: datetime) -> Health:
    """Look at all parts, at none longer than a few seconds."""
    health = Health()
    _look_at_database(health, now)
    health.broker = OK if broker_answers() else UNAVAILABLE
    if health.broker != OK:
        health.add("broker", "The broker does not answer: loops wait, and work with them.")
    return health


def _look_at_database(health: Health, now: datetime) -> None:
    # A connection that is kept may wait for an answer for ever; a new one has a time limit.
    probe = connection.copy()
    try:
        probe.ensure_connection()
        health.database = OK
        judge_migrations(health, probe)
        _judge_loops(health, loop_statuses(now=now), now)
    except DatabaseError as error:
        log.warning("database_unreachable", error=str(error))
        if health.database == UNAVAILABLE:
            health.add("database", "The database does not answer.")
        else:
            health.add("database", "The database refuses to tell of migrations and loops.")
            health.database = UNAVAILABLE
    finally:
        probe.close()


def judge_migrations(health: Health, database: BaseDatabaseWrapper) -> None:
    """Note whether the tables are those of this release."""
    missing = pending_migrations(database)
    health.migrations = PENDING if missing else OK
    if missing:
        health.add(
            "migrations",
            f"{len(missing)} migrations of this release have not been made, the first is "
            f"{missing[0]}: run `manage.py prepare_data`.",
        )


def _judge_loops(health: Health, statuses: list[LoopStatus], now: datetime) -> None:
    health.loops = {status.name: _loop(status, now) for status in statuses}
    # A slow loop has its first turn later than the others; that is no trouble while they run.
    if not any(status.health == LoopHealth.OK for status in statuses):
        health.add("loops", "No control loop has run lately: are worker and beat running?")
    for status in statuses:
        age_s = health.loops[status.name]["age_s"]
        if status.health == LoopHealth.LATE:
            began = "has had no turn yet" if age_s is None else f"began its last {age_s:.0f} s ago"
            health.add(
                "loops", f"The loop {status.name} {began}; its period is {status.period_s:g} s."
            )
        elif status.health == LoopHealth.FAILING and not _watches(status.name):
            health.add(
                "loops", f"The last turn of the loop {status.name} failed; its log tells why."
            )


def _watches(name: str) -> bool:
    loop = known_loops().get(name)
    return loop is not None and loop.watches


def _loop(status: LoopStatus, now: datetime) -> dict[str, Any]:
    age_s = None if status.started_at is None else (now - status.started_at).total_seconds()
    return {"status": status.health, "age_s": None if age_s is None else round(age_s, 1)}


def broker_answers() -> bool:
    """True when the broker answers within seconds; else its words are in the log."""
    client = redis.Redis.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=_BROKER_TIMEOUT_S,
        socket_timeout=_BROKER_TIMEOUT_S,
    )
    try:
        client.ping()
    except redis.RedisError as error:
        log.warning("broker_unreachable", error=str(error))
        return False
    finally:
        client.close()
    return True


def pending_migrations(database: BaseDatabaseWrapper) -> list[str]:
    """Migrations of this release that the database lacks, as `app.name`; two queries.

    By their files' names, since it would take a second to load them all.
    """
    made = {f"{app}.{name}" for app, name in MigrationRecorder(database).applied_migrations()}
    return sorted(set(_known_migrations()) - made)


def _known_migrations() -> Iterator[str]:
    for app in apps.get_app_configs():
        name = f"{app.name}.migrations"
        if util.find_spec(name) is not None:
            for module in pkgutil.iter_modules(import_module(name).__path__):
                yield f"{app.label}.{module.name}"

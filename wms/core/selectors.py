"""Selectors of control loops' health, of users' ids by name, and counts of accounts by role.

Also the backlog of the inbox, and the database's sessions.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import connection
from django.db.models import Q

from wms.core.loops import known_loops
from wms.core.models import ControlLoop, Role, User
from wms.core.sql import COUNT_INBOX, COUNT_SESSIONS

#: A loop is late when so many periods passed without a run, and at least this time.
_LATE_PERIODS = 3
_LATE_GRACE_S = 10.0


class LoopHealth(StrEnum):
    """Health of a control loop; one whose first turn is still to come in time is `never`."""

    OK = "ok"
    LATE = "late"
    FAILING = "failing"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class LoopStatus:
    """Last run of one control loop, and its health."""

    name: str
    health: LoopHealth
    period_s: float
    started_at: datetime | None = None
    duration_s: float | None = None
    error: str = ""


def loop_statuses(*, now: datetime) -> list[LoopStatus]:
    """All control loops by name, those that never ran included."""
    rows = {row.name: row for row in ControlLoop.objects.order_by("name")}
    ran = [_judged(row, now) for row in rows.values()]
    never = [
        LoopStatus(loop.name, LoopHealth.NEVER, loop.period_s)
        for loop in known_loops().values()
        if loop.name not in rows
    ]
    return sorted(ran + never, key=lambda status: status.name)


def _judged(row: ControlLoop, now: datetime) -> LoopStatus:
    return LoopStatus(
        name=row.name,
        health=_health(row, now),
        period_s=row.period_s,
        started_at=row.started_at,
        duration_s=row.duration_s,
        error=row.error,
    )


def _health(row: ControlLoop, now: datetime) -> LoopHealth:
    if row.error:
        return LoopHealth.FAILING
    allowed_s = max(_LATE_PERIODS * row.period_s, row.period_s + _LATE_GRACE_S)
    heard_at = row.started_at or row.known_since
    if now - heard_at > timedelta(seconds=allowed_s + (row.duration_s or 0.0)):
        return LoopHealth.LATE
    return LoopHealth.NEVER if row.started_at is None else LoopHealth.OK


def user_ids(usernames: Collection[str]) -> dict[str, int]:
    """The ids of the users of these names; names that nobody has are absent."""
    return dict(User.objects.filter(username__in=usernames).values_list("username", "pk"))


def count_accounts(role: Role) -> int:
    """Number of active accounts with this role, or a higher one."""
    roles = Role.values[Role.values.index(role) :]
    has_it = Q(role__in=roles) | Q(is_superuser=True)
    return User.objects.filter(has_it, is_active=True).count()


#: So many entries of the inbox are counted, and no more.
INBOX_COUNTED = 100_000


def inbox_backlog() -> dict[str, int]:
    """Number of entries that nobody has read yet, by topic; `INBOX_COUNTED` in all at the most."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT_INBOX, {"limit": INBOX_COUNTED})
        return dict(cursor.fetchall())


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions of the database's server by their state, and how many there may be."""

    by_state: dict[str, int]
    limit: int


def database_sessions() -> Sessions:
    """The sessions of all databases and accounts of the server."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT_SESSIONS)
        rows = cursor.fetchall()
    return Sessions({state: count for state, count, _ in rows}, limit=max(row[2] for row in rows))

"""Accounts of core-seconds by day, site and user: useful, failed, lost, idle and validation.

Attempts and pilots that ended are added to them; the sums by site, user or day tell efficiency and
waste.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import date
from enum import StrEnum
from typing import Any

from django.db import connection
from django.db.models import F, Q, QuerySet, Sum

from wms.accounting.models import DailyUse
from wms.accounting.sql import add_uses_of
from wms.accounting.walls import Walls, seen_by
from wms.core.models import User


@dataclass(frozen=True, slots=True)
class CoreSeconds:
    """Core-seconds, divided into useful, failed, lost, idle and validation.

    Useful: attempts whose job is done. Failed: payloads that came to a bad end of their own or by
    their watchdog. Lost: attempts that were killed, pre-empted, or whose pilots were gone. Idle and
    validation are pilots': no job used them, or the checks of the node did.
    """

    useful_s: float = 0.0
    failed_s: float = 0.0
    lost_s: float = 0.0
    idle_s: float = 0.0
    validation_s: float = 0.0

    @property
    def total_s(self) -> float:
        """Sum of all core-seconds."""
        return self.useful_s + self.failed_s + self.lost_s + self.idle_s + self.validation_s

    @property
    def wasted_s(self) -> float:
        """Sum of all core-seconds but the useful ones."""
        return self.total_s - self.useful_s

    @property
    def efficiency(self) -> float | None:
        """Useful part, from 0 to 1; None without any core-seconds."""
        return self.useful_s / self.total_s if self.total_s > 0 else None


@dataclass(frozen=True, slots=True)
class Use:
    """Core-seconds of one attempt, or of one pilot without its attempts, on its last day."""

    day: date
    site_name: str
    owner_name: str
    spent: CoreSeconds
    attempts: int = 0
    pilots: int = 0


class UseBy(StrEnum):
    """Groupings of the accounts."""

    SITE = "site"
    USER = "user"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class UseLine:
    """The accounts of one site, user or day."""

    name: str
    spent: CoreSeconds
    attempts: int
    pilots: int


_KINDS = tuple(each.name for each in fields(CoreSeconds))
_COUNTS = ("attempts", "pilots")
_SUMMED = (*_KINDS, *_COUNTS)
_COLUMN_BY = {UseBy.SITE: "site_name", UseBy.USER: "owner_name", UseBy.DAY: "day"}
_ADD_USES = add_uses_of(_KINDS, _COUNTS)


def add_uses(uses: Iterable[Use]) -> None:
    """Add to the accounts, in the caller's transaction, which marks what it adds as added."""
    sums: dict[tuple[date, str, str], list[float]] = {}
    for use in uses:
        line = sums.setdefault((use.day, use.site_name, use.owner_name), [0.0] * len(_SUMMED))
        amounts = [getattr(use.spent, name) for name in _KINDS]
        for place, amount in enumerate([*amounts, use.attempts, use.pilots]):
            line[place] += amount
    if not sums:
        return
    keys = [list(column) for column in zip(*sums, strict=True)]
    columns = [list(column) for column in zip(*sums.values(), strict=True)]
    counts = [[int(count) for count in column] for column in columns[len(_KINDS) :]]
    with connection.cursor() as cursor:
        cursor.execute(_ADD_USES, [*keys, *columns[: len(_KINDS)], *counts])


def visible_uses(user: User) -> QuerySet[DailyUse]:
    """The accounts that the user may read: all of them, since sites are shared."""
    return DailyUse.objects.all() if user.is_active else DailyUse.objects.none()


def _uses_by_user(user: User) -> QuerySet[DailyUse]:
    """The accounts of the people that the user may see."""
    return seen_by(user, DailyUse.objects.exclude(owner_name=""), _people_within)


def _people_within(walls: Walls) -> Q:
    return Q(owner_name__in=User.objects.filter(walls.of_users()).values("username"))


def use_lines(
    user: User, by: UseBy, *, since: date, until: date, site_name: str = ""
) -> list[UseLine]:
    """The accounts of these days, both included, told apart by one thing; most wasted first.

    Days come latest first. By user, what pilots spent without any job is left out, and who is of
    other frontends only.
    """
    every = _uses_by_user(user) if by is UseBy.USER else visible_uses(user)
    uses = every.filter(day__range=(since, until))
    if site_name:
        uses = uses.filter(site_name=site_name)
    sums = {f"sum_{name}": Sum(name) for name in _SUMMED}
    rows: Iterable[dict[str, Any]] = (
        uses.order_by().values(key=F(_COLUMN_BY[by])).annotate(**sums).values("key", *sums)
    )
    lines = [
        UseLine(
            name=str(row["key"]),
            spent=CoreSeconds(**{name: row[f"sum_{name}"] for name in _KINDS}),
            attempts=row["sum_attempts"],
            pilots=row["sum_pilots"],
        )
        for row in rows
    ]
    if by is UseBy.DAY:
        return sorted(lines, key=lambda line: line.name, reverse=True)
    return sorted(lines, key=lambda line: (-line.spent.wasted_s, line.name))

"""Accounts of core-seconds, times and attempts, told apart by site, user, group, label or time.

Also the same of the days before, to compare with. Days are those of UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import CharField, F, Q, QuerySet, Sum
from django.db.models.functions import Cast, TruncMonth

from wms.accounting.core_seconds import BY_LABEL, DAILY, CoreSeconds
from wms.accounting.models import DailyUse, LabelUse
from wms.accounting.walls import Walls, seen_by
from wms.core.models import User


class UseBy(StrEnum):
    """Groupings of the accounts."""

    SITE = "site"
    USER = "user"
    GROUP = "group"
    LABEL = "label"
    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Period:
    """Days from the first to the last one, both included."""

    since: date
    until: date

    @property
    def before(self) -> Period:
        """As many days that end just before these."""
        days = (self.until - self.since).days + 1
        return Period(self.since - timedelta(days=days), self.since - timedelta(days=1))


@dataclass(frozen=True, slots=True)
class UseOf:
    """Names by which the accounts are limited; an empty one does not limit."""

    site: str = ""
    user: str = ""
    group: str = ""
    label: str = ""

    @property
    def is_of_jobs(self) -> bool:
        """Whether pilots' own use, which has a site alone, is left out."""
        return bool(self.user or self.group or self.label)


@dataclass(frozen=True, slots=True)
class UseLine:
    """The accounts of one site, user, group, label, day or month.

    `cpu_s` and `wall_s` are CPU and wall time of payloads, which cores do not multiply.
    """

    name: str
    spent: CoreSeconds = CoreSeconds()  # noqa: RUF009 - it never changes
    cpu_s: float = 0.0
    wall_s: float = 0.0
    attempts: int = 0
    failed_attempts: int = 0
    lost_attempts: int = 0
    pilots: int = 0

    @property
    def cpu_efficiency(self) -> float | None:
        """CPU time by the core-seconds of attempts; None without any."""
        core_s = self.spent.of_attempts_s
        return self.cpu_s / core_s if core_s > 0 else None


_SPENT = frozenset(each.name for each in fields(CoreSeconds))
_KEY = {
    UseBy.SITE: F("site_name"),
    UseBy.USER: F("owner_name"),
    UseBy.GROUP: F("group_name"),
    UseBy.LABEL: F("label"),
    UseBy.DAY: Cast("day", CharField()),
    UseBy.MONTH: Cast(TruncMonth("day"), CharField()),
}
#: Characters of a month in its first day.
_MONTH = len("2026-11")
_OF_TIME = frozenset({UseBy.DAY, UseBy.MONTH})
_OF_JOBS = frozenset({UseBy.USER, UseBy.GROUP, UseBy.LABEL})


def use_lines(user: User, by: UseBy, period: Period, of: UseOf = UseOf()) -> list[UseLine]:
    """The accounts of these days, told apart by one thing; most wasted first, latest time first.

    By user, group or label, and of one of them, what pilots spent without any job is left out, and
    what the user may not see. A line without a name is of jobs in the name of no group. By label an
    attempt counts once for each of its labels.
    """
    has_label = by is UseBy.LABEL or bool(of.label)
    table = BY_LABEL if has_label else DAILY
    sums = {f"sum_{name}": Sum(name) for name in (*table.seconds, *table.counts)}
    rows = _rows(user, of, is_of_jobs=by in _OF_JOBS or of.is_of_jobs, has_label=has_label)
    summed = (
        rows.filter(day__range=(period.since, period.until))
        .order_by()
        .values(key=_KEY[by])
        .annotate(**sums)
        .values("key", *sums)
    )
    lines = [_line(by, row) for row in summed]
    if by in _OF_TIME:
        return sorted(lines, key=lambda line: line.name, reverse=True)
    return sorted(lines, key=lambda line: (-line.spent.wasted_s, line.name))


def _rows(user: User, of: UseOf, *, is_of_jobs: bool, has_label: bool) -> QuerySet[Any]:
    every: QuerySet[Any] = LabelUse.objects.all() if has_label else DailyUse.objects.all()
    if is_of_jobs:
        every = seen_by(user, every.exclude(owner_name=""), lambda walls: _within(walls, user))
    elif not user.is_active:
        every = every.none()
    named = {"site_name": of.site, "owner_name": of.user, "group_name": of.group, "label": of.label}
    return every.filter(**{column: name for column, name in named.items() if name})


def _within(walls: Walls, user: User) -> Q:
    """Use by people that the user may see, in the name of groups that the user may see."""
    people = Q(owner_name__in=User.objects.filter(walls.of_users()).values("username"))
    own = Q(owner_name=user.get_username()) & ~Q(group_name__in=walls.walled_names)
    return (people & walls.by_name("group_name", owner="")) | own


def _line(by: UseBy, row: Mapping[str, Any]) -> UseLine:
    sums = {name.removeprefix("sum_"): value for name, value in row.items() if name != "key"}
    spent = {name: sums.pop(name) for name in _SPENT & sums.keys()}
    name = row["key"][:_MONTH] if by is UseBy.MONTH else row["key"]
    return UseLine(name=name, spent=CoreSeconds(**spent), **sums)

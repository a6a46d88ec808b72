"""Accounts of core-seconds, times and attempts, told apart by site, user, group, label or time.

Also the same of the days before, to compare with. Days are those of UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import Case, CharField, F, Min, Q, QuerySet, Sum, Value, When
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


@dataclass(frozen=True, slots=True)
class UseOfDays:
    """Core-seconds of one name by day; or those of all others, which are `members` and nameless."""

    name: str
    core_s: Mapping[date, float]
    members: int = 1


def spent_by_day(user: User, period: Period, of: UseOf = UseOf()) -> list[UseOfDays]:
    """Core-seconds of each day by what became of them, as far as the user may see. One query."""
    names = list(DAILY.seconds)
    sums = {f"sum_{name}": Sum(name) for name in names if name in _SPENT}
    rows = _rows(user, of, is_of_jobs=of.is_of_jobs, has_label=False)
    days = list(_between(rows, period).values("day").annotate(**sums).values("day", *sums))
    return [
        UseOfDays(each.removeprefix("sum_"), {row["day"]: row[each] for row in days})
        for each in sums
    ]


def used_by_day(
    user: User, by: UseBy, period: Period, *, top: int, of: UseOf = UseOf()
) -> list[UseOfDays]:
    """Core-seconds of attempts by day: of the `top` names with most, largest first, and the rest.

    Three queries at most, whose answers do not grow with the number of names. What the user may not
    see is left out. By label an attempt counts once for each of its labels.
    """
    spent = F("useful_s") + F("failed_s") + F("lost_s")
    rows = _between(
        _rows(user, of, is_of_jobs=by in _OF_JOBS or of.is_of_jobs, has_label=by is UseBy.LABEL),
        period,
    ).annotate(key=_KEY[by])
    ranked = rows.values("key").annotate(core_s=Sum(spent)).filter(core_s__gt=0)
    largest = [row["key"] for row in ranked.order_by("-core_s", "key")[:top]]
    if not largest:
        return []
    is_shown = When(key__in=largest, then=F("key"))
    days = rows.annotate(is_rest=Case(When(key__in=largest, then=Value(0)), default=Value(1)))
    days = days.annotate(shown=Case(is_shown, default=Value("")))
    found: dict[tuple[int, str], dict[date, float]] = {(0, name): {} for name in largest}
    summed = days.values("day", "is_rest", "shown").annotate(core_s=Sum(spent))
    for row in summed.order_by("day"):
        found.setdefault((row["is_rest"], row["shown"]), {})[row["day"]] = row["core_s"]
    rest = found.pop((1, ""), None)
    lines = [UseOfDays(name, core_s) for (_, name), core_s in found.items()]
    if rest is None or not any(rest.values()):
        return lines
    return [*lines, UseOfDays("", rest, ranked.count() - len(largest))]


def first_day(period: Period) -> date | None:
    """First day of these of which there are accounts. One query."""
    days = DailyUse.objects.filter(day__range=(period.since, period.until))
    found: date | None = days.aggregate(first=Min("day"))["first"]
    return found


def _between(rows: QuerySet[Any], period: Period) -> QuerySet[Any]:
    return rows.filter(day__range=(period.since, period.until)).order_by()


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
    return (people & walls.by_name("group_name", owner="")) | walls.of_oneself(own)


def _line(by: UseBy, row: Mapping[str, Any]) -> UseLine:
    sums = {name.removeprefix("sum_"): value for name, value in row.items() if name != "key"}
    spent = {name: sums.pop(name) for name in _SPENT & sums.keys()}
    name = row["key"][:_MONTH] if by is UseBy.MONTH else row["key"]
    return UseLine(name=name, spent=CoreSeconds(**spent), **sums)

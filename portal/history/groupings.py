"""Groupings of history charts: by site, owner or label, the largest apart and the rest together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from matching.round_robin_archives import Resolution
from portal.history.parts import Part
from wms.accounting.accounts import (
    Period,
    UseBy,
    UseOf,
    UseOfDays,
    first_day,
    spent_by_day,
    used_by_day,
)
from wms.core.models import User
from wms.history.selectors import read_ranked

#: No line has this name but that of the rest: names of sites, users and labels have no such signs.
REST = "(others)"
USUAL_TOP, MOST_TOP = 8, 20
#: More points of each site are not read; a coarser archive is instead.
MOST_BINS = 800
_HOUR_S = 3600
_DAY_S = 86_400


class GroupBy(StrEnum):
    """Dimension by which the lines of a grouped chart are told apart."""

    SITE = "site"
    OWNER = "owner"
    LABEL = "label"


@dataclass(frozen=True, slots=True)
class Grouping:
    """Grouped form of a pane: another title, and what is read.

    A quantity is that of the series of sites; without one the accounts are read.
    """

    title: str
    quantity: str = ""


@dataclass(frozen=True, slots=True)
class GroupLine:
    """Values of a line by the beginnings of its points; of so many members."""

    name: str
    label: str
    values: Mapping[int, float]
    series: str = ""


_USE_BY = {GroupBy.SITE: UseBy.SITE, GroupBy.OWNER: UseBy.USER, GroupBy.LABEL: UseBy.LABEL}
_SPENT = {"useful_s": "useful", "failed_s": "failed", "lost_s": "lost", "idle_s": "idle",
          "validation_s": "checks of nodes"}  # fmt: skip


def read_sites(
    grouping: Grouping,
    resolution: Resolution,
    *,
    since: datetime,
    until: datetime,
    now: datetime,
    top: int,
    is_level: bool,
) -> list[GroupLine]:
    """Lines of the sites with most, and of the rest. One query."""
    found = read_ranked(
        grouping.quantity, resolution, since=since, until=until, now=now, top=top, is_level=is_level
    )
    return [
        GroupLine(
            each.name or REST,
            each.name or _rest(each.members),
            each.values,
            f"{grouping.quantity}@{each.name}" if each.name else "",
        )
        for each in found
    ]


def read_accounts(
    user: User,
    by: GroupBy | None,
    starts: Sequence[int],
    step_s: int,
    *,
    part: Part,
    top: int,
) -> list[GroupLine]:
    """Core-hours of the accounts in each point, by a grouping or by what became of them.

    Points before the first account have no value; later ones without one are zero. Two to four
    queries.
    """
    if not starts:
        return []
    period = Period(_day(starts[0]), _day(starts[-1] + step_s - _DAY_S))
    began = first_day(period)
    of = UseOf(site=part.site)
    if began is None:
        return []
    if by is None:
        return [
            _of_days(each, _SPENT[each.name], starts, step_s, began)
            for each in spent_by_day(user, period, of)
        ]
    return [
        _of_days(each, each.name or _rest(each.members), starts, step_s, began)
        for each in used_by_day(user, _USE_BY[by], period, top=top, of=of)
    ]


def _of_days(
    use: UseOfDays, label: str, starts: Sequence[int], step_s: int, began: date
) -> GroupLine:
    first_s = _seconds(began) // step_s * step_s
    values = {start: 0.0 for start in starts if start >= first_s}
    for day, core_s in use.core_s.items():
        start = _seconds(day) // step_s * step_s
        if start in values:
            values[start] += core_s / _HOUR_S
    return GroupLine(use.name.removesuffix("_s") if use.name in _SPENT else use.name or REST,
                     label, values)  # fmt: skip


def _seconds(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def _day(start_s: int) -> date:
    return datetime.fromtimestamp(start_s, UTC).date()


def _rest(members: int) -> str:
    return f"others ({members})"


def bins_in(since: datetime, until: datetime, step_s: int) -> float:
    """Number of bins of this width in a time."""
    return (until - since) / timedelta(seconds=step_s)

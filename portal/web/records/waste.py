"""Table of used and wasted core hours, for the efficiency page and the site page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from wms.accounting.accounts import UseLine
from wms.accounting.core_seconds import CoreSeconds

_SECONDS_PER_HOUR = 3600
#: A page shows so many lines: those with the most waste, or the latest days.
MOST_LINES = 400
_SPENT = ("useful_s", "failed_s", "lost_s", "idle_s", "validation_s")
_SUMMED = ("cpu_s", "wall_s", "attempts", "failed_attempts", "lost_attempts", "pilots")


@dataclass(frozen=True, slots=True)
class WasteLine:
    """One line of the table, in core hours; a sum has no name.

    `change_percent` tells how the hours changed from the days before, `before_percent` their
    efficiency; None where nothing was, or is compared.
    """

    name: str
    is_sum: bool
    total_h: float
    useful_h: float
    failed_h: float
    lost_h: float
    idle_h: float
    validation_h: float
    percent: float | None
    cpu_h: float
    cpu_percent: float | None
    attempts: int
    failed_attempts: int
    lost_attempts: int
    pilots: int
    before_h: float | None = None
    before_percent: float | None = None
    change_percent: float | None = None


def shown_lines(
    lines: Iterable[UseLine], before: Mapping[str, UseLine] | None = None, *, adds_up: bool = True
) -> list[WasteLine]:
    """Lines for the table; their sum follows several of them, if they add up."""
    found = list(lines)
    shown = [_line(each, before and before.get(each.name, UseLine(each.name)))
             for each in found[:MOST_LINES]]  # fmt: skip
    if len(found) < 2 or not adds_up:
        return shown
    summed = None if before is None else _sum(before.values())
    return [*shown, _line(_sum(found), summed, is_sum=True)]


def _sum(lines: Iterable[UseLine]) -> UseLine:
    every = list(lines)
    spent = {name: sum(getattr(line.spent, name) for line in every) for name in _SPENT}
    sums = {name: sum(getattr(line, name) for line in every) for name in _SUMMED}
    return UseLine(name="", spent=CoreSeconds(**spent), **sums)


def _line(line: UseLine, before: UseLine | None = None, *, is_sum: bool = False) -> WasteLine:
    spent = line.spent
    return WasteLine(
        name=line.name,
        is_sum=is_sum,
        total_h=spent.total_s / _SECONDS_PER_HOUR,
        useful_h=spent.useful_s / _SECONDS_PER_HOUR,
        failed_h=spent.failed_s / _SECONDS_PER_HOUR,
        lost_h=spent.lost_s / _SECONDS_PER_HOUR,
        idle_h=spent.idle_s / _SECONDS_PER_HOUR,
        validation_h=spent.validation_s / _SECONDS_PER_HOUR,
        percent=_percent(spent.efficiency),
        cpu_h=line.cpu_s / _SECONDS_PER_HOUR,
        cpu_percent=_percent(line.cpu_efficiency),
        attempts=line.attempts,
        failed_attempts=line.failed_attempts,
        lost_attempts=line.lost_attempts,
        pilots=line.pilots,
        before_h=before and before.spent.total_s / _SECONDS_PER_HOUR,
        before_percent=_percent(before.spent.efficiency) if before else None,
        change_percent=_change(before.spent.total_s, spent.total_s) if before else None,
    )


def _percent(part: float | None) -> float | None:
    return None if part is None else 100 * part


def _change(before_s: float, now_s: float) -> float | None:
    return 100 * (now_s - before_s) / before_s if before_s > 0 else None

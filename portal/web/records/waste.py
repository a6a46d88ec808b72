"""Table of used and wasted core hours, for the efficiency page and the site page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wms.accounting.core_seconds import CoreSeconds, UseLine

_SECONDS_PER_HOUR = 3600
#: A page shows so many lines: those with the most waste, or the latest days.
_MOST_LINES = 400


@dataclass(frozen=True, slots=True)
class WasteLine:
    """One line of the table, in core hours."""

    name: str
    useful_h: float
    failed_h: float
    lost_h: float
    idle_h: float
    validation_h: float
    percent: float | None
    attempts: int
    pilots: int


def shown_lines(lines: Iterable[UseLine]) -> list[WasteLine]:
    """Lines for the table, followed by their sum if there are several."""
    found = list(lines)
    shown = [_line(each) for each in found[:_MOST_LINES]]
    return [*shown, _line(_sum(found))] if len(found) > 1 else shown


def _sum(lines: list[UseLine]) -> UseLine:
    kinds = ("useful_s", "failed_s", "lost_s", "idle_s", "validation_s")
    spent = {name: sum(getattr(line.spent, name) for line in lines) for name in kinds}
    return UseLine(
        name="",
        spent=CoreSeconds(**spent),
        attempts=sum(line.attempts for line in lines),
        pilots=sum(line.pilots for line in lines),
    )


def _line(line: UseLine) -> WasteLine:
    spent, efficiency = line.spent, line.spent.efficiency
    return WasteLine(
        name=line.name,
        useful_h=spent.useful_s / _SECONDS_PER_HOUR,
        failed_h=spent.failed_s / _SECONDS_PER_HOUR,
        lost_h=spent.lost_s / _SECONDS_PER_HOUR,
        idle_h=spent.idle_s / _SECONDS_PER_HOUR,
        validation_h=spent.validation_s / _SECONDS_PER_HOUR,
        percent=None if efficiency is None else 100 * efficiency,
        attempts=line.attempts,
        pilots=line.pilots,
    )

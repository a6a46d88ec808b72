"""Forecast of the end of a campaign from the rates at which its pieces ended lately.

Pure: no clock, no database. A piece is a node of a DAG, or a job of a cluster. The formula is in
docs/how-to/run-a-campaign.md, with what it assumes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

#: Parts into which the time that is looked at is divided.
BINS = 12
#: The time that is looked at: what was longer ago tells little of what is to come.
LONGEST_WINDOW = timedelta(hours=24)
SHORTEST_WINDOW = timedelta(minutes=10)
#: Ends, and parts with an end, below which nothing is forecast.
LEAST_ENDS = 20
LEAST_BINS = 3
#: Parts at the end of which none may be without an end.
_LATEST_BINS = 3
#: Student's t for 80 % between both ends, and 11 degrees of freedom: those of twelve parts.
_T = 1.363
#: A later end is no forecast.
_MOST_BINS = 1e6


class NoForecast(StrEnum):
    """Causes why nothing is forecast."""

    OVER = "over"
    NOTHING_TO_DO = "nothing_to_do"
    TOO_EARLY = "too_early"
    TOO_FEW = "too_few"
    STALLED = "stalled"


#: The causes in words.
WHY_NOT = {
    NoForecast.OVER: "it has ended",
    NoForecast.NOTHING_TO_DO: "nothing of it has been submitted",
    NoForecast.TOO_EARLY: "it has been running for less than ten minutes",
    NoForecast.TOO_FEW: "too few of its nodes and jobs have ended to tell a rate",
    NoForecast.STALLED: "nothing of it has ended for a quarter of the time that is looked at",
}


class Verdict(StrEnum):
    """Answers to the question whether a deadline will be met."""

    NONE = "none"
    MET = "met"
    MISSED = "missed"
    LIKELY = "likely"
    OPEN = "open"
    UNLIKELY = "unlikely"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a campaign ends if it goes on as lately.

    The end is between `earliest` and `latest` in four of five cases; `latest` is None where the
    rates differ so much that it may take for ever. Without a forecast, `cause` tells why.
    """

    cause: NoForecast | None = None
    expected: datetime | None = None
    earliest: datetime | None = None
    latest: datetime | None = None
    per_hour: float = 0.0

    @property
    def why_not(self) -> str:
        """Why there is none, in words; empty with one."""
        return "" if self.cause is None else WHY_NOT[self.cause]


def window_of(begun: datetime | None, now: datetime) -> timedelta:
    """Length of the time up to now that is looked at; none before the campaign has begun."""
    return timedelta(0) if begun is None else max(timedelta(0), min(now - begun, LONGEST_WINDOW))


def forecast(
    *, total: int, left: int, ends: Sequence[int], window: timedelta, now: datetime
) -> Forecast:
    """Forecast for pieces of which some are `left`, from the `ends` in each part of the window.

    The ends of a part have a mean and a variance (at least that of chance alone). The end is
    expected when the mean has made up for what is left. The range allows for both: that the mean of
    so few parts is not the true one, and that parts to come differ as those before did.
    """
    if total == 0:
        return Forecast(NoForecast.NOTHING_TO_DO)
    if left == 0:
        return Forecast(NoForecast.OVER)
    if window < SHORTEST_WINDOW:
        return Forecast(NoForecast.TOO_EARLY)
    if sum(ends) < LEAST_ENDS or sum(1 for count in ends if count) < LEAST_BINS:
        return Forecast(NoForecast.TOO_FEW)
    if not any(ends[-_LATEST_BINS:]):
        return Forecast(NoForecast.STALLED)
    bins = len(ends)
    mean = sum(ends) / bins
    spread = math.sqrt(max(sum((count - mean) ** 2 for count in ends) / (bins - 1), mean))
    width = window / bins

    def at(parts: float | None) -> datetime | None:
        return None if parts is None else now + width * parts

    return Forecast(
        expected=at(left / mean),
        earliest=at(_parts_needed(left, mean, _T * spread, bins)),
        latest=at(_parts_needed(left, mean, -_T * spread, bins)),
        per_hour=mean / (width / timedelta(hours=1)),
    )


def _parts_needed(left: int, mean: float, spread: float, bins: int) -> float | None:
    """Number of parts m with m mean + spread sqrt(m + m^2 / bins) = left; None where none has it.

    The left side, where it falls at first, rises from its least value on, or for ever falls.
    """

    def done(parts: float) -> float:
        return parts * mean + spread * math.sqrt(parts + parts * parts / bins)

    if spread < 0 and mean + spread / math.sqrt(bins) <= 0:
        return None
    low, high = 0.0, 1.0
    while done(high) < left:
        low, high = high, high * 2
        if high > _MOST_BINS:
            return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if done(middle) < left else (low, middle)
    return high


def verdict(
    deadline: datetime | None, *, ended_at: datetime | None, found: Forecast, now: datetime
) -> Verdict:
    """Whether a deadline is met: as it came, or as it is forecast."""
    if deadline is None:
        return Verdict.NONE
    if ended_at is not None:
        return Verdict.MET if ended_at <= deadline else Verdict.MISSED
    if now > deadline:
        return Verdict.MISSED
    if found.earliest is None:
        return Verdict.UNKNOWN
    if found.earliest > deadline:
        return Verdict.UNLIKELY
    return Verdict.LIKELY if found.latest is not None and found.latest <= deadline else Verdict.OPEN

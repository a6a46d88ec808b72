"""Rules of repetition (RFC 5545, RRULE) that are followed: those that surely have a next date.

A rule without any date would be followed to the year 9999, whatever its end: so parts that may
contradict each other are refused before anything is computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

_PARTS = frozenset(
    {
        "FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "BYMONTH", "BYMONTHDAY", "BYSETPOS",
    }
)  # fmt: skip
_SINGLE = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST")
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_MAX_COUNT = 1000
#: Every month has these days, and each weekday so often.
_DAYS_OF_EVERY_MONTH = 28
_WEEKS_OF_EVERY_MONTH = 4
_DAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)")

Parts = Mapping[str, Sequence[Any]]


def refusal_of(rule: Mapping[str, Any]) -> str:
    """Why a rule is not followed, or an empty text; `rule` has a list of values for each part."""
    parts = {str(name).upper(): values for name, values in rule.items()}
    unknown = sorted(set(parts) - _PARTS)
    if unknown:
        return f"repeats by {', '.join(unknown)[:80]}, which is not followed"
    for check in _CHECKS:
        if reason := check(parts):
            return reason
    return ""


def _frequency(parts: Parts) -> str:
    return str(next(iter(parts.get("FREQ", [""])), "")).upper()


def _refuse_several(parts: Parts) -> str:
    several = [name for name in _SINGLE if len(parts.get(name, [])) > 1]
    return f"repeats with several values of {', '.join(several)}" if several else ""


def _refuse_frequency(parts: Parts) -> str:
    if _frequency(parts) in _FREQUENCIES:
        return ""
    return "repeats within a day: only daily, weekly, monthly and yearly events are followed"


def _refuse_interval(parts: Parts) -> str:
    [interval] = _numbers(parts, "INTERVAL") or [1]
    if interval < 1:
        return "repeats with an interval below 1"
    # Every seventh day may never be a Tuesday, every second month never a May.
    has_days = any(name.startswith("BY") for name in parts)
    if interval > 1 and _frequency(parts) == "DAILY" and has_days:
        return "repeats by INTERVAL and days, which may have no date"
    if interval > 1 and _frequency(parts) != "YEARLY" and "BYMONTH" in parts:
        return "repeats by INTERVAL and BYMONTH, which may have no date"
    return ""


def _refuse_count(parts: Parts) -> str:
    counts = _numbers(parts, "COUNT")
    if counts and "UNTIL" in parts:
        return "repeats with COUNT and UNTIL: give one of them"
    if any(not 1 <= count <= _MAX_COUNT for count in counts):
        return f"repeats with a COUNT that is not from 1 to {_MAX_COUNT}"
    if not all(isinstance(until, date) for until in parts.get("UNTIL", [])):
        return "repeats with an UNTIL that is no date"
    return ""


def _refuse_months(parts: Parts) -> str:
    if any(not 1 <= month <= 12 for month in _numbers(parts, "BYMONTH")):
        return "repeats in a month that there is not"
    days = _numbers(parts, "BYMONTHDAY")
    if any(not 1 <= abs(day) <= _DAYS_OF_EVERY_MONTH for day in days):
        most = _DAYS_OF_EVERY_MONTH
        return f"repeats by a BYMONTHDAY that not every month has: 1 to {most}, or -1 to -{most}"
    return ""


def _refuse_weekdays(parts: Parts) -> str:
    found = [_DAY.fullmatch(str(day).upper()) for day in parts.get("BYDAY", [])]
    if not all(found):
        return "repeats on a day of the week that there is not"
    ordinals = [int(day[1]) for day in found if day and day[1]]
    if any(not 1 <= abs(ordinal) <= _WEEKS_OF_EVERY_MONTH for ordinal in ordinals):
        return "repeats on a weekday that not every month has so often: 1 to 4, or -1 to -4"
    if ordinals and "BYMONTHDAY" in parts:
        return "repeats by the n-th weekday and BYMONTHDAY, which may have no date"
    return ""


def _refuse_positions(parts: Parts) -> str:
    positions = _numbers(parts, "BYSETPOS")
    is_in_months = _frequency(parts) in {"MONTHLY", "YEARLY"} and "BYDAY" in parts
    if positions and (not is_in_months or "BYMONTHDAY" in parts or _has_ordinals(parts)):
        return "repeats by BYSETPOS, which is followed for the weekdays of a month or year only"
    if any(not 1 <= abs(position) <= _WEEKS_OF_EVERY_MONTH for position in positions):
        return "repeats by a BYSETPOS that is not 1 to 4, or -1 to -4"
    return ""


def _has_ordinals(parts: Parts) -> bool:
    return any(str(day)[0] not in "MTWFSmtwfs" for day in parts["BYDAY"])


def _numbers(parts: Parts, name: str) -> list[int]:
    return [int(value) for value in parts.get(name, [])]


_CHECKS: Sequence[Callable[[Parts], str]] = (
    _refuse_several, _refuse_frequency, _refuse_interval, _refuse_count, _refuse_months,
    _refuse_weekdays, _refuse_positions,
)  # fmt: skip

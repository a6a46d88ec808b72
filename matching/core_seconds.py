"""Core-seconds of one pilot: its lifetime and useful work, and four kinds of waste in per mille.

Core-seconds are exact for pilots of many cores with mixed jobs, where seconds alone are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

#: What the payload itself brought to an end: success, or an exit code of its own.
_TERMINATED = frozenset({"ok", "error"})


class PilotJob(TypedDict):
    """One job of a pilot: its cores, its seconds, and `ok`, `error` or `killed`."""

    cores: int
    seconds: float
    outcome: str


class CoreAccounts(TypedDict):
    """Core-seconds `pilot`, `usable`, `used`, `good`; waste in per mille, from 0 to 1000."""

    core_seconds: dict[str, float]
    permille: dict[str, int]


def core_accounting(
    *,
    cores: int,
    pilot_seconds: float,
    validation_seconds: float = 0,
    daemon_seconds: float = 0,
    jobs: Sequence[PilotJob | Mapping[str, Any]] = (),
) -> CoreAccounts:
    """Accounts of one pilot.

    `pilot_seconds` is its lifetime, `validation_seconds` the time for checks before it took jobs,
    `daemon_seconds` the time in which it took jobs. Each kind of waste has its own divisor:
    validation is divided by the lifetime, idle by the usable time, unsuccessful by the used time,
    and `badput`, time that led to no finished payload, by the lifetime.
    """
    spent = [(job["cores"] * job["seconds"], job["outcome"]) for job in jobs]
    life, usable = cores * pilot_seconds, cores * daemon_seconds
    used = sum(amount for amount, _ in spent)
    good = sum(amount for amount, outcome in spent if outcome == "ok")
    terminated = sum(amount for amount, outcome in spent if outcome in _TERMINATED)
    return {
        "core_seconds": {"pilot": life, "usable": usable, "used": used, "good": good},
        "permille": {
            "validation": permille(validation_seconds, pilot_seconds),
            "idle": permille(usable - used, usable),
            "nosuccess": permille(used - good, used),
            "badput": permille(life - terminated, life),
        },
    }


def permille(part: float, whole: float) -> int:
    """Part of a whole in thousandths, rounded half up, from 0 to 1000; 0 if the whole is 0."""
    if whole <= 0:
        return 0
    return min(1000, max(0, int((2000 * part + whole) // (2 * whole))))

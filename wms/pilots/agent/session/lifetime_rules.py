"""Rules for a pilot's lifetime (retire, die) and for its end when idle: pure functions.

All times are whole seconds. Divisions cut towards zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LONGEST_JOB_S = 129_600
RETIRE_TIME_S = 21_600
#: Kept free before the end of the slot: for the last messages, and for payloads to end in order.
UPDATE_INTERVAL_S = 370
GRACEFUL_SHUTDOWN_S = 120
#: A pilot that could take jobs for less than this is not worth its start.
MIN_RETIRE_S = 600
MAX_IDLE_S = 1200
MAX_TAIL_S = 400

_SPREAD_GUESS_S = 66
_CREDENTIAL_MARGIN_S = 300
_LEAST_CREDENTIAL_S = 900


@dataclass(frozen=True)
class Lifetime:
    """Seconds from the start: after `retire_after` no new job, at `die_after` everything ends."""

    job_max_time: int
    retire_after: int
    die_after: int
    abort: bool


def lifetime(
    *,
    max_walltime: int | None = None,
    job_max_time: int = LONGEST_JOB_S,
    retire_time: int = RETIRE_TIME_S,
    retire_spread: int | None = None,
    random100: int = 0,
    credential_seconds_left: int | None = None,
    ignore_credential_expiry: bool = True,
    graceful_shutdown: int = GRACEFUL_SHUTDOWN_S,
    update_interval: int = UPDATE_INTERVAL_S,
    min_retire: int = MIN_RETIRE_S,
) -> Lifetime:
    """Compute a pilot's times, once, when it starts.

    `max_walltime` is the time of its slot; without one, `retire_time` and the longest job count.
    A job of `job_max_time` that begins just before the retirement still ends before the death; of
    a slot that is too short for that, jobs are taken shorter. `random100` (0 to 99) moves both
    times forward by a part of the spread, so that the pilots of a batch do not end together.
    """
    if max_walltime is None:
        retire = retire_time
        die = retire + job_max_time
    else:
        margin = graceful_shutdown + update_interval
        reserve = margin + (_SPREAD_GUESS_S if retire_spread is None else retire_spread)
        if reserve + job_max_time + min_retire > max_walltime:
            job_max_time = max(max_walltime - reserve - min_retire, 0)
        die = max_walltime - margin
        retire = die - job_max_time
    if credential_seconds_left is not None:
        usable = credential_seconds_left - _CREDENTIAL_MARGIN_S
        if die > usable and (not ignore_credential_expiry or usable < _LEAST_CREDENTIAL_S):
            retire, die = retire - (die - usable), usable
    spread = int(retire / 10) if retire_spread is None else retire_spread
    earlier = int(spread * random100 / 100)
    if retire - earlier >= min_retire:
        retire, die = retire - earlier, die - earlier
    return Lifetime(job_max_time, retire, die, abort=retire < min_retire)


@dataclass(frozen=True)
class Shutdown:
    """Decision to end, with the reason of each slot, and whether jobs are taken."""

    shutdown: bool
    reasons: list[str | None]
    accepts_jobs: bool


def pilot_shutdown(
    *,
    now: float,
    to_retire: float,
    to_die: float,
    slots: Sequence[Mapping[str, Any]],
    draining: bool = False,
    blackhole: bool = False,
    max_idle: float = MAX_IDLE_S,
    max_tail: float = MAX_TAIL_S,
) -> Shutdown:
    """Decide at a moment whether the pilot ends itself.

    Each slot tells `activity`, `state`, `job_starts`, `age`, `partitionable`, `total_slots`, and
    after jobs `idle_since`. Past `to_die` the pilot ends whatever runs. Else it ends when every
    slot has a reason to, and no payload runs: the parts of a partitionable slot are payloads.
    """
    reasons = [
        "to_die" if now > to_die else _idle_reason(slot, now, to_retire, max_idle, max_tail)
        for slot in slots
    ]
    is_free = now > to_die or not any(_has_children(slot) for slot in slots)
    return Shutdown(
        shutdown=is_free and all(reasons),
        reasons=reasons,
        accepts_jobs=now < to_retire and not draining and not blackhole,
    )


def _idle_reason(
    slot: Mapping[str, Any], now: float, to_retire: float, max_idle: float, max_tail: float
) -> str | None:
    if slot["activity"] != "Idle" or slot["state"] == "Claimed":
        return None
    if not slot.get("job_starts"):
        if slot["age"] > max_idle:
            return "idle_nojob"
    elif now - slot["idle_since"] > max_tail:
        return "idle_tail"
    if now > to_retire and not _has_children(slot):
        return "idle_retire"
    return None


def _has_children(slot: Mapping[str, Any]) -> bool:
    """Whether payloads run in parts of this slot."""
    return bool(slot.get("partitionable")) and slot.get("total_slots", 1) > 1

"""Decisions on single pilots in a batch system: keep, release or remove held and overdue ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping

#: A pilot that was held more often is not released any more, or is removed by force.
_MAX_RELEASES = 10
_MAX_POLITE_REMOVALS = 20
#: It stays held for so long, times the number of its holds, before it is released.
_RELEASE_AFTER_S = 300
#: Ages in the states idle and running, in seconds, beyond which a pilot is stale.
STALE_S = {"idle": 604_800, "running": 2_678_400}
#: A pilot may be in the state running for so long beyond its wall time.
_OVERTIME_S = 43_200


def held_decision(
    *,
    hold_code: int,
    hold_subcode: int,
    num_system_holds: int,
    held_seconds: float,
    recoverable_codes: Mapping[str, Collection[int]] | None = None,
) -> str:
    """Decision for a held pilot: keep, release, remove or force_remove.

    `recoverable_codes` has the hold codes that pass by themselves: code -> subcodes, all if empty.
    """
    subcodes = (recoverable_codes or {}).get(str(hold_code))
    is_recoverable = subcodes is not None and (not subcodes or hold_subcode in subcodes)
    if not is_recoverable or num_system_holds > _MAX_RELEASES:
        return "force_remove" if num_system_holds > _MAX_POLITE_REMOVALS else "remove"
    return "release" if held_seconds >= num_system_holds * _RELEASE_AFTER_S else "keep"


def stale_decision(*, state: str, age: float, configured_age: float | None = None) -> str:
    """Decision for a pilot that is idle or running for `age` seconds: `keep` or `remove`."""
    limit_s = STALE_S[state] if configured_age is None else configured_age
    return "remove" if age > limit_s else "keep"


def queue_self_removal(
    *,
    state: str,
    since_submission: float = 0,
    since_status: float = 0,
    idle_lifetime: float = 0,
    max_walltime: float = 0,
) -> str:
    """Rule by which a pilot leaves the queue by itself: keep or remove."""
    if state == "idle":
        is_over = idle_lifetime > 0 and since_submission > idle_lifetime
    else:
        is_over = since_status > max_walltime + _OVERTIME_S
    return "remove" if is_over else "keep"

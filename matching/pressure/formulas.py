"""Pilot pressure formulas (glideinWMS): level of waiting pilots and ceiling on all, for one queue.

A level of waiting pilots and a ceiling are requested, never a number "to start": the submitter tops
up to the level, so that the speed of the site sets the flow. Also the exact division of jobs by
weight, downtimes, whether a slot is usable for a waiting job, whether a batch system's answer is
trusted, and the lease of a request.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

#: Of jobs that have waited for long, one in so many adds to the level.
_OLD_JOBS_PER_PILOT = 3
#: A request that is not renewed ends after this time; an older view is not acted upon.
LEASE_S = 900
#: An answer that knows fewer pilots than this is too small to be judged by its change.
_GUARDED_FROM = 20


@dataclass(frozen=True, slots=True)
class Slots:
    """Numbers of slots: all, and those without a job."""

    slots_total: int = 0
    slots_idle: int = 0


@dataclass(frozen=True, slots=True)
class FrontendLimits:
    """Limits at which pressure stops (`max`) and is halved (`curb`), for each scope.

    Unbounded is a very large number. Ratio and attenuation are exact fractions of the configured
    decimal numbers.
    """

    max_running_per_entry: int = 10_000
    min_running_per_entry: int = 0
    relative_to_queue: float = 1.15
    max_idle_glideins_per_entry: int = 100
    reserve_idle_per_entry: int = 5
    max_idle_slots_per_entry: int = 100
    curb_idle_slots_per_entry: int = 5
    group_max_total: int = 100_000
    group_curb_total: int = 90_000
    group_max_idle_slots: int = 1000
    group_curb_idle_slots: int = 200
    frontend_max_total: int = 100_000
    frontend_curb_total: int = 90_000
    frontend_max_idle_slots: int = 1000
    frontend_curb_idle_slots: int = 200
    global_max_total: int = 100_000
    global_curb_total: int = 90_000
    global_max_idle_slots: int = 1000
    global_curb_idle_slots: int = 200
    ramp_up_attenuation: float = 3.0


@dataclass(frozen=True, slots=True)
class EffectiveIdle:
    """Pilots that a queue needs beyond its idle slots; never negative."""

    effective_idle: int
    effective_old_idle: int


def effective_idle(
    *,
    share_idle_mc: int,
    share_old_idle_mc: int = 0,
    slots_idle: int = 0,
    min_running_per_entry: int = 0,
) -> EffectiveIdle:
    """Needed pilots of a queue, from its share of idle jobs and its idle slots."""
    return EffectiveIdle(
        max(max(share_idle_mc, min_running_per_entry) - slots_idle, 0),
        max(share_old_idle_mc - slots_idle, 0),
    )


@dataclass(frozen=True, slots=True)
class Level:
    """Number of pilots that should wait, and the limits and curbs that were applied, in order."""

    min_idle: int
    triggered: tuple[str, ...] = ()


_NONE = Slots()
_DEFAULTS = FrontendLimits()


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """Slots in the four scopes that limit pressure."""

    entry: Slots
    group: Slots
    frontend: Slots
    everywhere: Slots


def min_idle(
    *,
    effective_idle: int,
    effective_old_idle: int,
    entry: Slots = _NONE,
    group: Slots = _NONE,
    frontend: Slots = _NONE,
    global_: Slots = _NONE,
    limits: FrontendLimits = _DEFAULTS,
    removal_requested: bool = False,
) -> Level:
    """Number of pilots that should wait in the batch system.

    A fraction of the need, so that it grows as pilots start; never more than a limit leaves, the
    reserve for old jobs included; at least one where there is need, as a probe.
    """
    if removal_requested:
        return Level(0)
    slots = _Surroundings(entry, group, frontend, global_)
    reached = _hard_limit(slots, limits)
    if reached:
        return Level(0, (reached,))
    if effective_idle <= 0:
        return Level(0)
    places = _places(slots, limits)
    pilots = int(min(effective_idle, places) / _exact(limits.ramp_up_attenuation))
    pilots += min(effective_old_idle // _OLD_JOBS_PER_PILOT, limits.reserve_idle_per_entry)
    pilots = min(pilots, limits.max_idle_glideins_per_entry, places)
    curbs = tuple(name for name, count, curb in _curbs(slots, limits) if count >= curb)
    return Level(max(pilots // 2 ** len(curbs), 1), curbs)


def _hard_limit(slots: _Surroundings, limits: FrontendLimits) -> str:
    """First limit that is reached; a count equal to the limit reaches it."""
    return next((name for name, count, limit in _maxima(slots, limits) if count >= limit), "")


def _maxima(slots: _Surroundings, limits: FrontendLimits) -> list[tuple[str, int, int]]:
    entry, group = slots.entry, slots.group
    frontend, everywhere = slots.frontend, slots.everywhere
    return [
        ("TotalGlideinsPerEntry", entry.slots_total, limits.max_running_per_entry),
        ("IdleGlideinsPerEntry", entry.slots_idle, limits.max_idle_slots_per_entry),
        ("TotalGlideinsPerGroup", group.slots_total, limits.group_max_total),
        ("IdleGlideinsPerGroup", group.slots_idle, limits.group_max_idle_slots),
        ("TotalGlideinsPerFrontend", frontend.slots_total, limits.frontend_max_total),
        ("IdleGlideinsPerFrontend", frontend.slots_idle, limits.frontend_max_idle_slots),
        ("TotalGlideinsGlobal", everywhere.slots_total, limits.global_max_total),
        ("IdleGlideinsGlobal", everywhere.slots_idle, limits.global_max_idle_slots),
    ]


def _curbs(slots: _Surroundings, limits: FrontendLimits) -> list[tuple[str, int, int]]:
    group, frontend, everywhere = slots.group, slots.frontend, slots.everywhere
    return [
        ("CurbIdleGlideinsPerEntry", slots.entry.slots_idle, limits.curb_idle_slots_per_entry),
        ("CurbTotalGlideinsPerGroup", group.slots_total, limits.group_curb_total),
        ("CurbIdleGlideinsPerGroup", group.slots_idle, limits.group_curb_idle_slots),
        ("CurbTotalGlideinsPerFrontend", frontend.slots_total, limits.frontend_curb_total),
        ("CurbIdleGlideinsPerFrontend", frontend.slots_idle, limits.frontend_curb_idle_slots),
        ("CurbTotalGlideinsGlobal", everywhere.slots_total, limits.global_curb_total),
        ("CurbIdleGlideinsGlobal", everywhere.slots_idle, limits.global_curb_idle_slots),
    ]


def _places(slots: _Surroundings, limits: FrontendLimits) -> int:
    """Smallest remainder that any limit leaves; the idle slots of the queue do not count."""
    return min(
        limit - count
        for name, count, limit in _maxima(slots, limits)
        if name != "IdleGlideinsPerEntry"
    )


def max_run(
    *,
    share_idle_mc: int,
    glideins_running_jobs: int,
    slots_idle: int = 0,
    relative_to_queue: float = _DEFAULTS.relative_to_queue,
    removal_requested: bool = False,
    excess_only: bool = False,
) -> int:
    """Ceiling on the pilots of a queue, waiting and running."""
    if removal_requested and not excess_only:
        return 0
    if share_idle_mc + glideins_running_jobs <= 0:
        return 0
    if share_idle_mc <= 0:
        return glideins_running_jobs
    busy = max(share_idle_mc - slots_idle, 0) + glideins_running_jobs
    return int(busy * _exact(relative_to_queue) + 1)


@dataclass(frozen=True, slots=True)
class Share:
    """Jobs for each name; with `unplaced` the sum is exactly the number of jobs."""

    share: Mapping[str, int]
    unplaced: int


def exact_share(jobs: int, weights: Mapping[str, float]) -> Share:
    """Jobs divided in proportion to weights by largest remainders, ties by name.

    With no weight above 0 nothing is assigned.
    """
    whole = _whole(weights)
    total = sum(whole.values())
    if not total:
        return Share(dict.fromkeys(weights, 0), jobs)
    share = {name: jobs * weight // total for name, weight in whole.items()}
    left = jobs - sum(share.values())
    if left:
        remainders = sorted((-(jobs * weight % total), name) for name, weight in whole.items())
        for _, name in remainders[:left]:
            share[name] += 1
    return Share(share, 0)


def _whole(weights: Mapping[str, float]) -> dict[str, int]:
    """Whole numbers in the same proportions; negative ones count as 0."""
    if all(isinstance(weight, int) for weight in weights.values()):
        return {name: max(int(weight), 0) for name, weight in weights.items()}
    exact = {name: max(_exact(weight), Fraction(0)) for name, weight in weights.items()}
    scale = math.lcm(*(weight.denominator for weight in exact.values()))
    return {name: int(weight * scale) for name, weight in exact.items()}


def down_entry(
    *,
    frontend_down: bool,
    entry_down: bool,
    share_idle_mc: int,
    slots_idle: int,
    glideins_running_jobs: int,
) -> tuple[int, int]:
    """Level and ceiling in a downtime: nothing new is submitted, nothing is removed."""
    if frontend_down or entry_down:
        return 0, 0
    need = effective_idle(share_idle_mc=share_idle_mc, slots_idle=slots_idle)
    level = min_idle(effective_idle=need.effective_idle, effective_old_idle=0)
    ceiling = max_run(
        share_idle_mc=share_idle_mc,
        glideins_running_jobs=glideins_running_jobs,
        slots_idle=slots_idle,
    )
    return level.min_idle, ceiling


@dataclass(frozen=True, slots=True)
class SlotState:
    """Free cores, memory, GPUs and time of one slot."""

    free_cores: int = 0
    free_memory_mb: int = 0
    free_gpus: int = 0
    seconds_to_retire: float = 0
    draining: bool = False


@dataclass(frozen=True, slots=True)
class SmallestRequest:
    """Least cores, memory, GPUs and time that any eligible waiting job needs."""

    cores: int = 0
    memory_mb: int = 0
    gpus: int = 0
    walltime: int = 0


@dataclass(frozen=True, slots=True)
class Usability:
    """Whether a slot could take a waiting job; `reasons` name what it lacks."""

    usable: bool
    reasons: tuple[str, ...]


def usable_slot(slot: SlotState, smallest_request: SmallestRequest) -> Usability:
    """Whether an idle slot could take a waiting job."""
    lacks = {
        "draining": slot.draining,
        "cores": slot.free_cores < smallest_request.cores,
        "memory": slot.free_memory_mb < smallest_request.memory_mb,
        "gpus": slot.free_gpus < smallest_request.gpus,
        "lifetime": slot.seconds_to_retire < smallest_request.walltime,
    }
    reasons = tuple(word for word, is_lacking in lacks.items() if is_lacking)
    return Usability(not reasons, reasons)


@dataclass(frozen=True, slots=True)
class ViewVerdict:
    """Whether to `use` a new view of the queue or to `hold` the previous one, and why."""

    action: str
    alarm: bool


def view_guard(
    *,
    source_ok: bool,
    age: float,
    previous_total: int,
    current_total: int,
    explained_loss: int = 0,
) -> ViewVerdict:
    """Whether an answer of a batch system may be trusted.

    A sudden loss of more than half is not trusted unless known pilot ends explain it.
    """
    loss = previous_total - current_total
    is_loss_sudden = previous_total >= _GUARDED_FROM and current_total * 2 < previous_total
    is_unexplained = is_loss_sudden and explained_loss * 2 < loss
    is_held = not source_ok or age > LEASE_S or is_unexplained
    return ViewVerdict("hold" if is_held else "use", is_held)


@dataclass(frozen=True, slots=True)
class RequestLease:
    """Whether a request is still topped up, how many pilots it may bring, and for how long."""

    honoured: bool
    extra_submitted_at_most: int
    stops_within_seconds: float


def request_lease(
    *,
    age: float = 0,
    lifetime: float = LEASE_S,
    req_max_glideins: int = 0,
    queued_now: int = 0,
    running_now: int = 0,
    starts_per_minute: int = 0,
    lease_minutes: int = LEASE_S // 60,
    zero_published_at: float | None = None,
    factory_cycle: float = 60,
) -> RequestLease:
    """Remaining lifetime of a request that is no longer renewed.

    An explicit zero ends it within one cycle.
    """
    places = req_max_glideins - queued_now - running_now
    return RequestLease(
        honoured=age <= lifetime,
        extra_submitted_at_most=max(0, min(starts_per_minute * lease_minutes, places)),
        stops_within_seconds=(
            max(0, lifetime - age) if zero_published_at is None else factory_cycle
        ),
    )


def _exact(number: float) -> Fraction:
    """Exact decimal number as written, not the nearest binary one."""
    return Fraction(number) if isinstance(number, int) else Fraction(str(number))

"""Numbers of pilots that the submitter submits to a queue or removes from it in one cycle.

Submission tops up to the request; removal begins with the most harmless kind of pilots, and follows
from what was configured or observed in earlier cycles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

#: Demand must be gone for more turns than this before pilots that were not submitted are dropped,
#: and all slots idle, or none there, for more than the other, before others are.
_TURNS_TO_WAIT = 5
_TURNS_TO_IDLE = 10


@dataclass(frozen=True, slots=True)
class FactoryLimits:
    """Limits of a queue, of a class of its pilots, and of one cycle."""

    entry_max_glideins: int = 10_000
    entry_max_idle: int = 2000
    entry_max_held: int = 1000
    class_max_glideins: int = 5000
    class_max_idle: int = 100
    class_max_held: int = 50
    max_submits: int = 100
    cluster_size: int = 10


@dataclass(frozen=True, slots=True)
class Counts:
    """Pilots that have not finally ended, by their state in the batch system."""

    idle: int = 0
    running: int = 0
    held: int = 0

    @property
    def total(self) -> int:
        """Waiting and running pilots."""
        return self.idle + self.running


@dataclass(frozen=True, slots=True)
class Turn:
    """Actions of one cycle: submit, cleanup or sanitize (care for held pilots only).

    `clusters` are the sizes of the submissions, `adjusted_min_idle` is the request after limits.
    """

    action: str
    submit: int
    adjusted_min_idle: int
    entry_limits: tuple[str, ...]
    clusters: tuple[int, ...] = ()


_DEFAULTS = FactoryLimits()


def factory_request(
    *,
    req_min_idle: int,
    req_max_glideins: int,
    mine: Counts,
    entry: Counts,
    class_: Counts,
    limits: FactoryLimits = _DEFAULTS,
    downtime: bool = False,
) -> Turn:
    """Actions that top up to the requested level, within the ceiling and every limit."""
    reached = _entry_limits(entry, limits)
    adjusted = 0 if downtime or reached else req_min_idle
    if class_.held >= limits.class_max_held:
        return Turn("sanitize", 0, adjusted, reached)
    add = min(
        adjusted - mine.idle,
        req_max_glideins - mine.total,
        limits.entry_max_idle - entry.idle,
        limits.entry_max_glideins - entry.total,
        limits.class_max_idle - class_.idle,
        limits.class_max_glideins - class_.total,
        limits.max_submits,
    )
    if add <= 0:
        return Turn("cleanup", 0, adjusted, reached)
    return Turn("submit", add, adjusted, reached, portions(add, limits.cluster_size))


def _entry_limits(entry: Counts, limits: FactoryLimits) -> tuple[str, ...]:
    reached = {
        "IdleGlideinsPerEntry": entry.idle >= limits.entry_max_idle,
        "TotalGlideinsPerEntry": entry.total >= limits.entry_max_glideins,
        "HeldGlideinsPerEntry": entry.held >= limits.entry_max_held,
    }
    return tuple(name for name, is_reached in reached.items() if is_reached)


def portions(count: int, size: int) -> tuple[int, ...]:
    """`count` split into portions of `size`, the last one smaller."""
    full, rest = divmod(count, size)
    return (size,) * full + ((rest,) if rest else ())


class Removal(IntEnum):
    """Kinds of pilots that may be removed; each kind includes those before it."""

    NO = 0
    WAIT = 1
    IDLE = 2
    ALL = 3


@dataclass(frozen=True, slots=True)
class Removable:
    """Pilots of one request by how easily they are removed."""

    unsubmitted: int = 0
    queued: int = 0
    running: int = 0
    held_unrecoverable: int = 0
    held_recoverable: int = 0

    @property
    def held(self) -> int:
        """All that are held."""
        return self.held_unrecoverable + self.held_recoverable


@dataclass(frozen=True, slots=True)
class Cleanup:
    """Kind of pilots that is removed in a cycle, or None, and their number."""

    target: str | None = None
    selected: int = 0
    removed_this_cycle: int = 0


def factory_cleanup(
    *,
    remove_excess: str,
    frontend_min_idle: int,
    max_glideins: int,
    mine: Removable,
    class_: Counts,
    margin: int = 0,
    max_removes: int = 5,
) -> Cleanup:
    """Pilots beyond the request that are removed now: the most harmless kind that exists."""
    kind = Removal[remove_excess]
    is_over_idle = kind >= Removal.WAIT and class_.idle > frontend_min_idle + margin
    is_over_total = kind == Removal.ALL and class_.total > max_glideins + margin
    if not is_over_idle and not is_over_total:
        if kind == Removal.ALL and max_glideins == 0:
            return _cleanup("held", mine.held, max_removes)
        return Cleanup()
    number = class_.idle - frontend_min_idle - margin
    if is_over_total and class_.running + frontend_min_idle > max_glideins:
        number = class_.total - max_glideins - margin
    if mine.unsubmitted:
        return _cleanup("unsubmitted", min(number, mine.unsubmitted), max_removes)
    if mine.queued and kind >= Removal.IDLE:
        return _cleanup("queued", min(number, mine.queued), max_removes)
    if kind == Removal.ALL:
        return _cleanup("running", min(number, mine.running) + mine.held, max_removes)
    return Cleanup()


def _cleanup(target: str, selected: int, max_removes: int) -> Cleanup:
    return Cleanup(target, selected, min(selected, max_removes)) if selected > 0 else Cleanup()


@dataclass(frozen=True, slots=True)
class RemovalConfig:
    """Configured removal: remove this kind when demand was gone for `wait` cycles.

    With `requests_tracking` always, if the request is exceeded by more than the margin. The type
    DISABLE switches off all removal, also the automatic one.
    """

    type: str = Removal.NO.name
    wait: int = 0
    requests_tracking: bool = False
    margin: int = 0


@dataclass(frozen=True, slots=True)
class Observed:
    """Observations of `repeat` consecutive cycles."""

    idle_jobs: int
    slots_total: int
    slots_idle: int
    repeat: int = 1


Decision = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Decisions:
    """Kind and margin of removal for every cycle."""

    all: tuple[Decision, ...]

    @property
    def last(self) -> Decision:
        """Kind of the last cycle."""
        return self.all[-1] if self.all else (Removal.NO.name, 0)

    @property
    def first_cycle_not_NO(self) -> int | None:
        """First cycle, counted from 1, in which something may be removed."""
        kinds = (kind for kind, _ in self.all)
        return next((turn for turn, kind in enumerate(kinds, 1) if kind != "NO"), None)


_UNCONFIGURED = RemovalConfig()


def removal_decision(
    cycles: Iterable[Observed],
    config: RemovalConfig = _UNCONFIGURED,
    *,
    view_complete: bool = True,
) -> Decisions:
    """Kind of pilots that may be removed, from what was observed cycle by cycle.

    An incomplete view never leads to a removal.
    """
    turns = [each for each in cycles for _ in range(each.repeat)]
    if not view_complete:
        return Decisions(((Removal.NO.name, 0),) * len(turns))
    demand_gone = _runs([turn.idle_jobs == 0 for turn in turns])
    all_idle = _runs([turn.slots_idle >= turn.slots_total for turn in turns])
    none_there = _runs([turn.slots_total == 0 for turn in turns])
    return Decisions(
        tuple(
            _decided(config, gone, automatic_removal(gone, idle, none))
            for gone, idle, none in zip(demand_gone, all_idle, none_there, strict=True)
        )
    )


def automatic_removal(demand_gone: int, all_idle: int, none_there: int) -> Removal:
    """Kind that is removed without configuration, after some cycles of each observation."""
    if demand_gone <= _TURNS_TO_WAIT:
        return Removal.NO
    if all_idle <= _TURNS_TO_IDLE:
        return Removal.WAIT
    return Removal.ALL if none_there > _TURNS_TO_IDLE else Removal.IDLE


def _runs(holds: Sequence[bool]) -> list[int]:
    """Number of consecutive cycles, up to each, in which it was true."""
    runs: list[int] = []
    for each in holds:
        runs.append((runs[-1] if runs else 0) + 1 if each else 0)
    return runs


def _decided(config: RemovalConfig, demand_gone: int, automatic: Removal) -> Decision:
    if config.type == "DISABLE":
        return Removal.NO.name, 0
    configured = Removal[config.type]
    if not config.requests_tracking and demand_gone <= config.wait:
        configured = Removal.NO
    if automatic > configured:
        return automatic.name, 0
    return configured.name, config.margin if config.requests_tracking else 0

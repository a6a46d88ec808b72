"""Plan of the director: level and ceiling of pilots for every entry, and what reduced them.

An entry is a queue as one frontend sees it; most queues have one. Limits and curbs hold for the
queue, its site, groups, frontends, and all pilots together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from matching.plurals import counted, pilots_are
from matching.pressure.formulas import (
    FrontendLimits,
    Slots,
    effective_idle,
    exact_share,
    max_run,
    min_idle,
)
from matching.pressure.plan_values import Bounds, QueueState, Request, Scopes
from matching.pressure.shared_queues import by_shared_queue, divide, divided_levels, lower

_FREE = Bounds("")


@dataclass(slots=True)
class _Count:
    """Pilots of one scope."""

    alive: int = 0
    cores: int = 0
    idle: int = 0


def plan(queues: Sequence[QueueState], scopes: Scopes) -> dict[str, Request]:
    """Requests for all queues. What several queues share is never promised twice."""
    more, reasons = _ceilings(queues)
    shared = by_shared_queue(queues)
    for name, some in shared.items():
        divide(scopes.shared[name], some, more, reasons)
    for limited in _scoped(queues, scopes):
        _cut(limited, more, reasons)
    counts = _Counts(queues)
    requests = {
        queue.name: _request(queue, more[queue.name], reasons[queue.name], counts, scopes)
        for queue in queues
    }
    for name, some in shared.items():
        requests |= divided_levels(scopes.shared[name], some, requests)
    return requests


def _ceilings(
    queues: Iterable[QueueState],
) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Additional pilots that each queue may get by its own need and limit."""
    more: dict[str, int] = {}
    reasons: dict[str, list[str]] = {}
    for queue in queues:
        reasons[queue.name] = []
        wanted = max(_ceiling(queue) - queue.alive, 0)
        room = max(queue.max_pilots - queue.alive, 0)
        more[queue.name] = min(wanted, room)
        if not queue.closed and queue.max_pilots - queue.running < queue.need.pilots:
            reason = f"queue limit {queue.max_pilots}: {pilots_are(queue.alive, 'there')}"
            reasons[queue.name].append(reason)
    return more, reasons


def _ceiling(queue: QueueState) -> int:
    """Pilots that the queue's jobs keep busy; idle and stranded ones that fit none come on top."""
    if queue.closed or not queue.need.pilots:
        return 0
    busy = max_run(
        share_idle_mc=queue.need.pilots + queue.need.usable,
        glideins_running_jobs=queue.busy,
        slots_idle=queue.need.usable,
    )
    return busy + max(queue.running - queue.busy, 0) + queue.stranded


@dataclass(frozen=True, slots=True)
class _Scoped:
    bounds: Bounds
    queues: Sequence[QueueState]


def _scoped(queues: Sequence[QueueState], scopes: Scopes) -> list[_Scoped]:
    """Queues under each of the bounds, the narrow bounds first."""
    by_site: dict[str, list[QueueState]] = defaultdict(list)
    by_group: dict[str, list[QueueState]] = defaultdict(list)
    for queue in queues:
        by_site[queue.site].append(queue)
        by_group[queue.group].append(queue)
    return [
        *(
            _Scoped(scopes.sites[name], some)
            for name, some in by_site.items()
            if name in scopes.sites
        ),
        *(
            _Scoped(scopes.groups[name], some)
            for name, some in by_group.items()
            if name in scopes.groups
        ),
        _Scoped(scopes.whole, queues),
    ]


def _cut(scoped: _Scoped, more: dict[str, int], reasons: Mapping[str, list[str]]) -> None:
    """Divide exactly what the bounds leave, in proportion to what is requested."""
    bounds, queues = scoped.bounds, scoped.queues
    alive = sum(queue.alive for queue in queues)
    cores = sum(queue.alive * queue.cores for queue in queues)
    asked = {queue.name: more[queue.name] for queue in queues if more[queue.name]}
    room = max(bounds.max_pilots - alive, 0)
    if sum(asked.values()) > room:
        reason = _full(bounds, _Count(alive))
        lower(more, exact_share(room, asked).share, reason, reasons)
    sizes = {queue.name: queue.cores for queue in queues}
    asked = {name: more[name] * sizes[name] for name in asked}
    room = max(bounds.max_cores - cores, 0)
    if sum(asked.values()) > room:
        limit = counted(bounds.max_cores, "core", "cores")
        reason = f"{bounds.name} {limit}: {counted(cores, 'is', 'are')} there"
        shares = exact_share(room, asked).share
        pilots = {name: share // sizes[name] for name, share in shares.items()}
        lower(more, pilots, reason, reasons)


class _Counts:
    """The pilots of all, of each site and of each group."""

    def __init__(self, queues: Iterable[QueueState]) -> None:
        self.whole = _Count()
        self.sites: dict[str, _Count] = defaultdict(_Count)
        self.groups: dict[str, _Count] = defaultdict(_Count)
        for queue in queues:
            for count in (self.whole, self.sites[queue.site], self.groups[queue.group]):
                count.alive += queue.alive
                count.idle += queue.need.usable


def _slots(count: _Count, queue: QueueState) -> Slots:
    """Slots as the formula counts them: pilots waiting in this queue are part of the level."""
    return Slots(count.alive - queue.queued, count.idle)


def _request(
    queue: QueueState, more: int, reasons: list[str], counts: _Counts, scopes: Scopes
) -> Request:
    if queue.closed:
        return Request(queue.need.pilots, 0, queue.running, (queue.closed,))
    if not queue.need.total_jobs:
        return Request(0, 0, queue.running, (queue.no_demand,))
    wanted = queue.need.pilots
    if not wanted:
        usable = counted(queue.need.usable, "pilot has", "pilots have")
        return Request(0, 0, queue.running, (f"{usable} room for its jobs",))
    bounds = _bounds_of(queue, scopes)
    limits = _limits(queue, *bounds)
    site, group = counts.sites[queue.site], counts.groups[queue.group]
    need = effective_idle(
        share_idle_mc=wanted, share_old_idle_mc=min(queue.need.old_pilots, wanted)
    )
    answer = min_idle(
        effective_idle=need.effective_idle,
        effective_old_idle=need.effective_old_idle,
        entry=Slots(queue.running, queue.need.usable),
        group=_slots(group, queue),
        frontend=_slots(site, queue),
        global_=_slots(counts.whole, queue),
        limits=limits,
    )
    own = Bounds(
        "queue limit",
        max_pilots=queue.max_pilots,
        max_idle=queue.max_idle,
        curb_idle=queue.curb_idle,
    )
    acting = {
        "Entry": (own, _Count(queue.running, idle=queue.need.usable)),
        "Group": (bounds[0], group),
        "Frontend": (bounds[1], site),
        "Global": (bounds[2], counts.whole),
    }
    triggers = [_trigger_text(name, acting) for name in answer.triggered]
    level = min(answer.min_idle + queue.stranded, queue.queued + more)
    scoped = zip(bounds, (group, site, counts.whole), strict=True)
    full = [_full(each, count) for each, count in scoped if _room(each, count, queue) < wanted]
    return Request(
        wanted,
        level,
        queue.alive + more,
        tuple(dict.fromkeys([*reasons, *full, *_ramp(queue, wanted, limits, level), *triggers])),
    )


def _room(bounds: Bounds, count: _Count, queue: QueueState) -> int:
    """Pilots that may wait in the queue under these bounds."""
    return bounds.max_pilots - count.alive + queue.queued


def _full(bounds: Bounds, count: _Count) -> str:
    return f"{bounds.name} {bounds.max_pilots}: {pilots_are(count.alive, 'there')}"


def _ramp(queue: QueueState, wanted: int, limits: FrontendLimits, level: int) -> list[str]:
    """Parts of the formula itself that kept the level below what is wanted."""
    reasons = []
    reserve = min(queue.need.old_pilots // 3, limits.reserve_idle_per_entry)
    if queue.attenuation > 1 and 0 < level - queue.stranded < wanted:
        reasons.append(f"ramp-up: wanted divided by {queue.attenuation:g}")
    if int(wanted / limits.ramp_up_attenuation) + reserve > queue.max_queued:
        reasons.append(f"at most {counted(queue.max_queued, 'waiting pilot', 'waiting pilots')}")
    return reasons


def _bounds_of(queue: QueueState, scopes: Scopes) -> tuple[Bounds, Bounds, Bounds]:
    """Bounds of the queue's group, of its site, and of the whole."""
    group = scopes.groups.get(queue.group, _FREE)
    return group, scopes.sites.get(queue.site, _FREE), scopes.whole


def _limits(queue: QueueState, group: Bounds, site: Bounds, whole: Bounds) -> FrontendLimits:
    return FrontendLimits(
        max_running_per_entry=queue.max_pilots,
        max_idle_glideins_per_entry=queue.max_queued,
        max_idle_slots_per_entry=queue.max_idle,
        curb_idle_slots_per_entry=queue.curb_idle,
        group_max_total=group.max_pilots,
        group_curb_total=group.curb_pilots,
        group_max_idle_slots=group.max_idle,
        group_curb_idle_slots=group.curb_idle,
        frontend_max_total=site.max_pilots,
        frontend_curb_total=site.curb_pilots,
        frontend_max_idle_slots=site.max_idle,
        frontend_curb_idle_slots=site.curb_idle,
        global_max_total=whole.max_pilots,
        global_curb_total=whole.curb_pilots,
        global_max_idle_slots=whole.max_idle,
        global_curb_idle_slots=whole.curb_idle,
        ramp_up_attenuation=queue.attenuation,
    )


def _trigger_text(name: str, acting: Mapping[str, tuple[Bounds, _Count]]) -> str:
    """A limit or curb that was applied, in words."""
    bounds, count = next(acting[level] for level in acting if name.endswith(level))
    is_curb, is_idle = name.startswith("Curb"), "Idle" in name
    seen = pilots_are(count.idle, "idle") if is_idle else pilots_are(count.alive, "there")
    if is_curb:
        curb = bounds.curb_idle if is_idle else bounds.curb_pilots
        return f"halved at the curb {curb} of the {bounds.name}: {seen}"
    limit = f"{bounds.max_idle} idle" if is_idle else f"{bounds.max_pilots}"
    return f"{bounds.name} {limit}: {seen}"

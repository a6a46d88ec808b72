"""Queues in which several frontends have pilots: places divided among their requests, by share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from matching.plurals import counted, pilots_are
from matching.pressure.entry_shares import Claimant, divide_places
from matching.pressure.plan_values import QueueState, Request, SharedQueue


def by_shared_queue(queues: Iterable[QueueState]) -> dict[str, list[QueueState]]:
    """Entries in queues where several frontends have pilots, by the queue."""
    shared: dict[str, list[QueueState]] = defaultdict(list)
    for queue in queues:
        if queue.shared:
            shared[queue.shared].append(queue)
    return shared


def divide(
    bounds: SharedQueue,
    queues: Sequence[QueueState],
    more: dict[str, int],
    reasons: Mapping[str, list[str]],
) -> None:
    """Divide the places of a queue among its frontends, by their shares.

    First those that their jobs fill, then those that only raise a ceiling: together their ceilings
    are never above the queue's.
    """
    claimants = {
        queue.name: Claimant(queue.share, queue.alive, _missing(queue, more[queue.name]))
        for queue in queues
        if queue.share
    }
    # Pilots of a frontend that is not served here any more keep their places to their ends.
    others = sum(queue.alive for queue in queues if not queue.share)
    alive = sum(queue.alive for queue in queues)
    if sum(each.more for each in claimants.values()) <= max(bounds.max_pilots - alive, 0):
        _divide_rest(bounds.max_pilots - others, claimants, more)
        return
    given = divide_places(bounds.max_pilots - others, claimants)
    reason = f"its share of the queue limit {bounds.max_pilots}: {pilots_are(alive, 'there')}"
    lower(more, given, reason, reasons)


def _divide_rest(places: int, filled: Mapping[str, Claimant], more: dict[str, int]) -> None:
    """Divide the places that are left when everybody has those that the jobs fill."""
    rest = {
        name: Claimant(each.share, each.most, more[name] - each.more)
        for name, each in filled.items()
    }
    for name, given in divide_places(places, rest).items():
        more[name] = filled[name].more + given


def _missing(queue: QueueState, more: int) -> int:
    """New pilots that the jobs fill, without what a ceiling adds to them."""
    return min(more, max(queue.need.pilots + queue.stranded - queue.queued, 0))


def divided_levels(
    bounds: SharedQueue, queues: Sequence[QueueState], requests: Mapping[str, Request]
) -> dict[str, Request]:
    """Requests of the frontends of a queue, with the places for waiting pilots divided."""
    levels = {queue.name: requests[queue.name].level for queue in queues if queue.share}
    if sum(levels.values()) <= bounds.max_queued:
        return {}
    waiting = {q.name: min(q.queued, levels[q.name]) for q in queues if q.share}
    if sum(waiting.values()) > bounds.max_queued:
        # Not all that wait have a place: who keeps one is decided by share as well.
        waiting = dict.fromkeys(waiting, 0)
    # With those that run: else a small share would never get the last of few places.
    claimants = {
        queue.name: Claimant(
            queue.share,
            held=queue.running + waiting[queue.name],
            more=levels[queue.name] - waiting[queue.name],
        )
        for queue in queues
        if queue.share
    }
    running = sum(queue.running for queue in queues if queue.share)
    given = divide_places(running + bounds.max_queued, claimants)
    lowered = {name: waiting[name] + more for name, more in given.items()}
    most = counted(bounds.max_queued, "waiting pilot", "waiting pilots")
    reason = f"its share of at most {most} in the queue"
    return {
        name: replace(requests[name], level=level, reasons=(*requests[name].reasons, reason))
        for name, level in lowered.items()
        if level < requests[name].level
    }


def lower(
    more: dict[str, int], shares: Mapping[str, int], reason: str, reasons: Mapping[str, list[str]]
) -> None:
    """Cut pilots down to these shares, and note the reason where it did."""
    for name, share in shares.items():
        if share < more[name]:
            more[name] = share
            reasons[name].append(reason)

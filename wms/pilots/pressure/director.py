"""Director, a control loop: plans how many pilots should wait at each queue, wakes submitters.

Stores the plan as requests, and asks no batch system anything. Each waiting job counts for one
queue only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from matching.pressure.capacity import ResourceVector
from matching.pressure.job_division import Identity, Need, QueueOffer, share_out
from matching.pressure.plan import QueueState, Request, plan
from matching.task_queues.resources import Resource
from wms.core.loops import wake
from wms.jobs.limits import reached_limits
from wms.pilots.pressure.backoff import Kind, back_offs, clear_start_failures, described
from wms.pilots.pressure.fitting import (
    FittingJobs,
    QueueMatcher,
    grouped_jobs,
    largest_first,
    no_fit_reasons,
)
from wms.pilots.pressure.identities import (
    Identities,
    OwnerNeed,
    is_long_gone,
    owner_needs,
    read_identities,
    stranded,
)
from wms.pilots.pressure.remover import removal_due
from wms.pilots.pressure.requests import Planned, store_requests, stored_requests
from wms.pilots.pressure.snapshot import Owner, QueuePilots, pilots_by_queue, scopes, seen_disk_mb
from wms.pilots.pressure.submitter import SERVE_TASK
from wms.pilots.pressure_models import PressureRequest
from wms.pilots.program.published import published_here
from wms.sites.models import Queue
from wms.sites.selectors import enabled_queues, lapsed_identities, offered_resource
from wms.sites.standing import standings
from wms.taskqueues.selectors import Demand, demands, priorities, queues_waiting_since

#: The task that runs the director's cycle.
DIRECT_TASK = "wms.pilots.direct"
#: Jobs that waited longer add to the level at its tail.
_OLD_AFTER = timedelta(seconds=600)
#: Batch systems in which pilots cannot wait start them at once: there is nothing to be damped.
_WITHOUT_WAITING = frozenset({"host"})


@dataclass(frozen=True, slots=True)
class _QueueStates:
    """All queues at one moment, those that are closed with their reasons."""

    queues: Sequence[Queue]
    closed: Mapping[int, str]
    offers: Mapping[str, Resource]
    pilots: Mapping[int, QueuePilots]
    identities: Identities


def run_cycle(now: datetime) -> dict[str, Any]:
    """Renew the requests of all queues, and wake the submitter of each that has something to do."""
    asked = plan_requests(now)
    due = [each.queue_id for each in asked.values() if each.is_due]
    for queue_id in due:
        wake(SERVE_TASK, queue_id)
    queues = {
        name: {
            "wanted": each.request.wanted,
            "granted": each.request.level,
            "reasons": list(each.request.reasons),
        }
        for name, each in asked.items()
        if each.request.wanted
    }
    return {"served": len(due), "queues": queues}


@dataclass(frozen=True, slots=True)
class QueueRequest:
    """Request for one queue; `is_due` when its submitter has something to do now."""

    queue_id: int
    request: Request
    is_due: bool


def plan_requests(now: datetime) -> dict[str, QueueRequest]:
    """Plan and store the request of every queue; by the queue's name, the most urgent first.

    Some twenty statements, however many queues, pilots and jobs there are. No batch system is asked
    anything. Each waiting job counts for one queue only.
    """
    clear_start_failures(now)
    waiting = demands()
    times_s = sorted({demand.needs.cpu_time_s for demand in waiting})
    states = _queue_states(now, times_s, waiting)
    matcher = QueueMatcher(states.offers)
    fitting = grouped_jobs(
        waiting,
        matcher,
        priorities=priorities(),
        old=queues_waiting_since(now - _OLD_AFTER),
        owned={str(queue) for queue in states.queues if queue.has_owners},
        identity_of=states.identities.of_needs,
    )
    needs = _needs(states, fitting)
    old = stored_requests()
    requests = plan(_states(states, needs, _no_demand(states, needs, waiting)), scopes())
    ordered = sorted(states.queues, key=lambda queue: -_need(needs, queue).priority)
    planned = [_planned(queue, states, needs, requests, old, now) for queue in ordered]
    store_requests(planned, old, now)
    return {
        str(queue): QueueRequest(
            queue.pk, requests[str(queue)], _is_due(queue, states, each, old, now)
        )
        for queue, each in zip(ordered, planned, strict=True)
    }


def _is_due(
    queue: Queue,
    states: _QueueStates,
    planned: Planned,
    old: Mapping[int, PressureRequest],
    now: datetime,
) -> bool:
    """Whether fewer pilots wait than should, or some are to be taken back."""
    queued = _pilots(states, queue).queued
    owners = [OwnerNeed(**each) for each in planned.owners]
    if any(is_long_gone(each, queue, now) for each in owners):
        return True
    if planned.request.level:
        return queued < planned.request.level
    before = old.get(queue.pk)
    return before is not None and queued > 0 and removal_due(before, queue, now)


def _queue_states(now: datetime, times_s: Sequence[int], waiting: Sequence[Demand]) -> _QueueStates:
    queues = list(
        Queue.objects.select_related("site", "owner", "owner_group").order_by("site__name", "name")
    )
    closed = _closed(queues, now)
    limits = reached_limits(now)
    disk_mb = seen_disk_mb(now)
    published = published_here(queues, now=now)
    offers = {}
    for queue in queues:
        if queue.pk not in closed:
            at_limit = tuple(limit.kind for limit in limits if limit.is_at(queue.site.name))
            offer = offered_resource(queue)
            disk = min(offer.disk_mb, disk_mb.get(queue.pk, offer.disk_mb))
            offers[str(queue)] = replace(
                offer, excluded=at_limit, disk_mb=disk, publishes=published[queue.pk]
            )
    has_owners = any(queue.has_owners for queue in queues)
    identities = read_identities(waiting) if has_owners else Identities()
    pilots = pilots_by_queue(now, times_s=times_s)
    return _QueueStates(queues, closed, offers, pilots, identities)


def _closed(queues: Sequence[Queue], now: datetime) -> dict[int, str]:
    """Queues that are sent nothing, whatever waits, with the reason."""
    lapsed = lapsed_identities([(queue.owner, queue.owner_group) for queue in queues])
    is_open = set(enabled_queues(now).values_list("pk", flat=True))
    standing = standings(now)
    pausing = back_offs(now, [Kind.SUBMIT, Kind.START])
    closed = {}
    for queue in queues:
        identity = (queue.owner, queue.owner_group)
        if not queue.is_enabled or not queue.site.is_enabled:
            closed[queue.pk] = "the queue or its site is switched off"
        elif queue.pk not in is_open:
            closed[queue.pk] = standing[queue.site_id].reason
        elif identity in lapsed:
            closed[queue.pk] = lapsed[identity]
        elif queue.pk in pausing:
            closed[queue.pk] = described(pausing[queue.pk])
    return closed


def _needs(states: _QueueStates, fitting: FittingJobs) -> dict[str, Need]:
    """Need of each queue that is open: its share of the waiting jobs."""
    offers = {}
    for queue in states.queues:
        if queue.pk in states.closed:
            continue
        offer, pilots = states.offers[str(queue)], _pilots(states, queue)
        offers[str(queue)] = QueueOffer(
            ResourceVector(offer.cores, offer.memory_mb, offer.gpus, offer.cpu_time_s),
            places=queue.max_pilots - pilots.queued - pilots.running,
            max_pilots=queue.max_pilots,
            waiting=pilots.queued,
            started=pilots.started,
            idle=pilots.free,
            has_owners=queue.has_owners,
            waiting_of=_by_identity(pilots.queued_of, states.identities),
            idle_of=_rooms_by_identity(pilots.free_of, states.identities),
        )
    return share_out(fitting.groups, offers)


def _by_identity(counts: Mapping[Owner, int], identities: Identities) -> Counter[Identity]:
    found: Counter[Identity] = Counter()
    for owner, count in counts.items():
        found[identities.of_pilot(owner)] += count
    return found


def _rooms_by_identity(
    rooms: Mapping[Owner, Counter[ResourceVector]], identities: Identities
) -> dict[Identity, Counter[ResourceVector]]:
    found: dict[Identity, Counter[ResourceVector]] = defaultdict(Counter)
    for owner, free in rooms.items():
        found[identities.of_pilot(owner)] += free
    return found


def _pilots(states: _QueueStates, queue: Queue) -> QueuePilots:
    return states.pilots.get(queue.pk) or QueuePilots()


def _need(needs: Mapping[str, Need], queue: Queue) -> Need:
    return needs.get(str(queue)) or Need()


def _no_demand(
    states: _QueueStates, needs: Mapping[str, Need], waiting: Sequence[Demand]
) -> dict[str, str]:
    """Reasons why the queues that are open and have no share have none."""
    if not waiting:
        return {}
    largest = largest_first(waiting)
    reasons = {}
    for name, offer in states.offers.items():
        if not needs[name].total_jobs:
            why = "; ".join(no_fit_reasons(offer, largest))
            reasons[name] = f"no job fits: {why}" if why else "other queues take the jobs"
    return reasons


def _states(
    states: _QueueStates, needs: Mapping[str, Need], no_demand: Mapping[str, str]
) -> list[QueueState]:
    return [
        QueueState(
            name=str(queue),
            need=_need(needs, queue),
            closed=states.closed.get(queue.pk, ""),
            no_demand=no_demand.get(str(queue), "no job waits"),
            queued=_pilots(states, queue).queued,
            running=_pilots(states, queue).running,
            busy=_pilots(states, queue).busy,
            stranded=stranded(
                _need(needs, queue), _pilots(states, queue).queued_of, states.identities
            ),
            cores=queue.cores,
            max_pilots=queue.max_pilots,
            max_queued=queue.max_queued_pilots,
            max_idle=queue.max_idle_pilots,
            curb_idle=queue.curb_idle_pilots,
            attenuation=1.0 if queue.element in _WITHOUT_WAITING else queue.attenuation,
            site=queue.site.name,
            group=queue.owner_group.name if queue.owner_group else "",
        )
        for queue in states.queues
    ]


def _planned(
    queue: Queue,
    states: _QueueStates,
    needs: Mapping[str, Need],
    requests: Mapping[str, Request],
    old: Mapping[int, PressureRequest],
    now: datetime,
) -> Planned:
    need, pilots = _need(needs, queue), _pilots(states, queue)
    owners = []
    if queue.has_owners:
        owners = owner_needs(need, pilots, states.identities, old.get(queue.pk), now)
    return Planned(
        queue.pk,
        requests[str(queue)],
        need.total_jobs,
        is_closed=queue.pk in states.closed,
        is_idle=not pilots.busy,
        owners=owners,
    )

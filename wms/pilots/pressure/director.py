"""Director, a control loop: plans how many pilots should wait at each entry, wakes submitters.

An entry is a queue as one frontend sees it; most queues have one, that of the default frontend.
Stores the plan as requests, and asks no batch system anything. Each waiting job counts for one
entry only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from matching.pressure.capacity import ResourceVector
from matching.pressure.job_division import Need, share_out
from matching.pressure.plan import plan
from matching.pressure.plan_values import QueueState, Request, SharedQueue
from wms.core.loops import wake
from wms.pilots.pressure.backoff import clear_start_failures
from wms.pilots.pressure.entry_states import EntryStates, queue_offers, read_states
from wms.pilots.pressure.fitting import (
    QueueMatcher,
    grouped_jobs,
    largest_first,
    no_fit_reasons,
)
from wms.pilots.pressure.identities import OwnerNeed, is_long_gone, owner_needs, stranded
from wms.pilots.pressure.remover import removal_due
from wms.pilots.pressure.requests import Planned, store_requests, stored_requests
from wms.pilots.pressure.snapshot import frontend_scope, scopes
from wms.pilots.pressure.submitter import SERVE_TASK
from wms.pilots.pressure_models import PressureRequest
from wms.sites.frontends.entries import Entry, EntryKey
from wms.taskqueues.selectors import Demand, demands, priorities, queues_waiting_since

#: The task that runs the director's cycle.
DIRECT_TASK = "wms.pilots.direct"
#: Jobs that waited longer add to the level at its tail.
_OLD_AFTER = timedelta(seconds=600)
#: Batch systems in which pilots cannot wait start them at once: there is nothing to be damped.
_WITHOUT_WAITING = frozenset({"host"})


def run_cycle(now: datetime) -> dict[str, Any]:
    """Renew the requests of all entries, and wake the submitter of each queue that is due."""
    asked = plan_requests(now)
    due = list(dict.fromkeys(each.queue_id for each in asked.values() if each.is_due))
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
    """Request for one entry; `is_due` when its queue's submitter has something to do now."""

    queue_id: int
    request: Request
    is_due: bool


def plan_requests(now: datetime) -> dict[str, QueueRequest]:
    """Plan and store the request of every entry; by the entry's name, the most urgent first.

    Some twenty statements, however many queues, pilots and jobs there are. No batch system is asked
    anything. Each waiting job counts for one entry only.
    """
    clear_start_failures(now)
    waiting = demands()
    states = read_states(now, waiting)
    fitting = grouped_jobs(
        waiting,
        QueueMatcher(states.offers),
        priorities=priorities(),
        old=queues_waiting_since(now - _OLD_AFTER),
        owned={str(entry) for entry in states.entries if entry.queue.has_owners},
        identity_of=states.identities.of_needs,
    )
    needs = share_out(fitting.groups, queue_offers(states, waiting)) | _ordered_needs(states)
    old = stored_requests()
    bounds = replace(scopes(), shared=_shared_queues(states))
    requests = plan(_states(states, needs, _no_demand(states, needs, waiting)), bounds)
    ordered = sorted(states.entries, key=lambda entry: -_need(needs, entry).priority)
    planned = [_planned(entry, states, needs, requests, old, now) for entry in ordered]
    store_requests(planned, old, now)
    return {
        str(entry): QueueRequest(
            entry.queue.pk, requests[str(entry)], _is_due(entry, states, each, old, now)
        )
        for entry, each in zip(ordered, planned, strict=True)
    }


def _shared_queues(states: EntryStates) -> dict[str, SharedQueue]:
    return {
        str(entry.queue): SharedQueue(entry.queue.max_pilots, entry.queue.max_queued_pilots)
        for entry in states.entries
        if states.is_shared(entry)
    }


def _is_due(
    entry: Entry,
    states: EntryStates,
    planned: Planned,
    old: Mapping[EntryKey, PressureRequest],
    now: datetime,
) -> bool:
    """Whether fewer pilots wait than should, or some are to be taken back."""
    queued = states.pilots_of(entry).queued
    owners = [OwnerNeed(**each) for each in planned.owners]
    if any(is_long_gone(each, entry.queue, now) for each in owners):
        return True
    if planned.request.level:
        return queued < planned.request.level
    before = old.get(entry.key)
    return before is not None and queued > 0 and removal_due(before, entry.queue, now)


def _ordered_needs(states: EntryStates) -> dict[str, Need]:
    """Needs of remote frontends: what they have ordered and does not run yet.

    They have been damped and cut where the jobs are; here only limits and shares count.
    """
    needs = {}
    for entry in states.entries:
        count = states.ordered.get(entry.key, 0)
        if entry.key in states.ordered and str(entry) not in states.closed:
            pilots = count + states.pilots_of(entry).queued
            queue = entry.queue
            size = ResourceVector(queue.cores, queue.memory_mb, queue.gpus, queue.wall_time_s)
            needs[str(entry)] = Need(
                jobs=Counter({size: pilots} if pilots else {}), pilots=pilots, priority=float(count)
            )
    return needs


def _need(needs: Mapping[str, Need], entry: Entry) -> Need:
    return needs.get(str(entry)) or Need()


def _no_demand(
    states: EntryStates, needs: Mapping[str, Need], waiting: Sequence[Demand]
) -> dict[str, str]:
    """Reasons why the entries that are open and have no share of the jobs have none."""
    reasons = dict(states.withdrawn)
    if not waiting:
        return reasons
    largest = largest_first(waiting)
    for name, offer in states.offers.items():
        if not needs[name].total_jobs:
            why = "; ".join(no_fit_reasons(offer, largest))
            reasons[name] = f"no job fits: {why}" if why else "other queues take the jobs"
    return reasons


def _states(
    states: EntryStates, needs: Mapping[str, Need], no_demand: Mapping[str, str]
) -> list[QueueState]:
    return [_state(entry, states, _need(needs, entry), no_demand) for entry in states.entries]


def _state(
    entry: Entry, states: EntryStates, need: Need, no_demand: Mapping[str, str]
) -> QueueState:
    queue, pilots = entry.queue, states.pilots_of(entry)
    is_undamped = queue.element in _WITHOUT_WAITING or entry.key in states.ordered
    return QueueState(
        name=str(entry),
        need=need,
        closed=states.closed.get(str(entry), ""),
        no_demand=no_demand.get(str(entry), "no job waits"),
        queued=pilots.queued,
        running=pilots.running,
        busy=pilots.busy,
        stranded=stranded(need, pilots.queued_of, states.identities),
        cores=queue.cores,
        max_pilots=entry.max_pilots,
        max_queued=entry.max_queued,
        max_idle=queue.max_idle_pilots,
        curb_idle=queue.curb_idle_pilots,
        attenuation=1.0 if is_undamped else queue.attenuation,
        site=queue.site.name,
        group=queue.owner_group.name if queue.owner_group else frontend_scope(entry.frontend),
        shared=str(queue) if states.is_shared(entry) else "",
        share=entry.share,
    )


def _planned(
    entry: Entry,
    states: EntryStates,
    needs: Mapping[str, Need],
    requests: Mapping[str, Request],
    old: Mapping[EntryKey, PressureRequest],
    now: datetime,
) -> Planned:
    need, pilots = _need(needs, entry), states.pilots_of(entry)
    owners = []
    if entry.queue.has_owners:
        owners = owner_needs(need, pilots, states.identities, old.get(entry.key), now)
    return Planned(
        entry.key,
        requests[str(entry)],
        need.total_jobs,
        is_closed=str(entry) in states.closed,
        is_idle=not pilots.busy,
        owners=owners,
    )

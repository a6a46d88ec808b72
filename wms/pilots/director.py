"""The director: sends as many pilots to each queue as there is work for them."""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db.models import Sum
from django.db.models.functions import Now

from matching.pressure import (
    PressureDecision,
    QueueSnapshot,
    Room,
    decide_pressure,
    pilots_for,
)
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.elements.protocol import Element, Refused
from wms.jobs.limits import reached_limits
from wms.jobs.models import Attempt
from wms.pilots import lifecycle
from wms.pilots.bootstrap import PilotCredential, render_script
from wms.pilots.bundle import agent_bundle
from wms.pilots.faults import faults_contained
from wms.pilots.models import Pilot
from wms.pilots.services import secret_digest
from wms.pilots.states import ALIVE, PENDING, PilotState
from wms.pilots.unserved import Kinds, Unserved
from wms.sites.models import Queue
from wms.sites.selectors import (
    element_of,
    enabled_queues,
    fresh_time_s,
    lapsed_identities,
    offered_resource,
)
from wms.taskqueues.selectors import demands

log = structlog.get_logger(__name__)
_ACTOR = Actor.system("director")
_ENDING_MARGIN_S = 60
#: A batch system that said no is asked again after this time.
_BACK_OFF = timedelta(seconds=60)
_REFUSAL = "the batch system refused"
#: What is read of each living pilot.
_COLUMNS = (
    "state", "node", "registered_at", "owner_id", "owner_group_id", "queue__cores",
    "queue__memory_mb", "queue__gpus", "queue__wall_time_s", "queue__owner_id",
    "queue__owner_group_id",
)  # fmt: skip
#: The task that runs the director's cycle.
DIRECT_TASK = "wms.pilots.direct"


@dataclass(slots=True)
class PilotCounts:
    """The living pilots of one queue, and what is `free` in those that will take jobs."""

    pending: int = 0
    alive: int = 0
    free: Counter[Room] = field(default_factory=Counter)


def run_cycle(now: datetime) -> dict[str, Any]:
    """Compare waiting jobs with pilots, queue by queue, and submit what is missing.

    A few queries, however many queues there are. A batch system that fails is reported and does not
    keep the others from being served. Jobs that fit several queues are counted for the first of
    them that takes a pilot for them. No pilot is sent for kinds of jobs that have reached a running
    limit, and none for an owner whose account is switched off or who has left the queue's group.
    """
    kinds = Kinds(demands())
    counts = pilot_counts(now, times_s=kinds.times_s)
    limits = reached_limits(now)
    queues = list(enabled_queues(now))
    closed = _closed_queues(queues, now)
    report: dict[str, Any] = {}
    for queue in queues:
        if queue.pk in closed:
            report[str(queue)] = {"submitted": 0, "reason": closed[queue.pk]}
            continue
        at_limit = tuple(limit.kind for limit in limits if limit.is_at(queue.site.name))
        offer = replace(offered_resource(queue), excluded=at_limit)
        unserved = Unserved.by(offer, kinds)
        fresh = Room(offer.cores, offer.memory_mb, offer.gpus, offer.cpu_time_s)
        report[str(queue)] = _serve(queue, fresh, unserved, counts.get(queue.pk, PilotCounts()))
    return {"queues": report}


def _closed_queues(queues: Sequence[Queue], now: datetime) -> dict[int, str]:
    """The queues that are sent nothing, whatever waits, with the reason."""
    lapsed = lapsed_identities([(queue.owner, queue.owner_group) for queue in queues])
    closed = {
        queue.pk: lapsed[queue.owner, queue.owner_group]
        for queue in queues
        if (queue.owner, queue.owner_group) in lapsed
    }
    for queue_id, refusal in recent_refusals(now).items():
        closed.setdefault(queue_id, f"waiting {_BACK_OFF.seconds} s after: {refusal}")
    return closed


def recent_refusals(now: datetime) -> dict[int, str]:
    """Queues whose batch system refused pilots a moment ago, with its reason."""
    refused = Pilot.objects.filter(
        state=PilotState.ABORTED, ended_at__gt=now - _BACK_OFF, state_reason__startswith=_REFUSAL
    )
    return dict(refused.order_by("pk").values_list("queue_id", "state_reason"))


def pilot_counts(now: datetime, *, times_s: Sequence[int]) -> dict[int, PilotCounts]:
    """Living pilots by queue, with what their open attempts leave of their slots.

    `times_s` are the CPU times that jobs need, in ascending order: the time that a pilot has left
    is cut to one of them, so that the pilots of a queue are of few kinds.
    """
    held = _held()
    counts: dict[int, PilotCounts] = defaultdict(PilotCounts)
    for pilot in Pilot.objects.filter(state__in=ALIVE).select_related("queue").only(*_COLUMNS):
        count = counts[pilot.queue_id]
        count.alive += 1
        count.pending += pilot.state in PENDING
        if pilot.state == PilotState.STALLED or not _is_up_to_date(pilot):
            continue
        shorter = bisect_right(times_s, _left_s(pilot, now))
        room = _slot(pilot, times_s[shorter - 1] if shorter else 0)
        left = room.without(held.get(pilot.pk, Room(0)), 1)
        if left.cores > 0:
            count.free[left] += 1
    return counts


def _left_s(pilot: Pilot, now: datetime) -> float:
    """The time that a pilot has left for jobs; one that has not called in has all of its own."""
    if pilot.registered_at is None:
        return fresh_time_s(pilot.queue)
    used = now - pilot.registered_at
    return pilot.queue.wall_time_s - used.total_seconds()


def _is_up_to_date(pilot: Pilot) -> bool:
    """Whether the pilot is for the same people as those that its queue would be sent today."""
    queue = pilot.queue
    return (pilot.owner_id, pilot.owner_group_id) == (queue.owner_id, queue.owner_group_id)


def _slot(pilot: Pilot, time_s: int) -> Room:
    """What is the pilot's own: of its queue's offer, what its batch system really gave it."""
    queue, node = pilot.queue, pilot.node
    return Room(
        min(queue.cores, node.get("slot_cores", queue.cores)),
        min(queue.memory_mb, node.get("slot_memory_mb", queue.memory_mb)),
        min(queue.gpus, node.get("slot_gpus", queue.gpus)),
        time_s,
    )


def _held() -> dict[int, Room]:
    """What the open attempts of each pilot hold."""
    attempts = Attempt.objects.filter(outcome="").order_by().values_list("pilot_id")
    sums = attempts.annotate(Sum("cores"), Sum("memory_mb"), Sum("gpus"))
    return {pilot_id: Room(*amounts) for pilot_id, *amounts in sums}


def _serve(queue: Queue, fresh: Room, unserved: Unserved, counts: PilotCounts) -> dict[str, Any]:
    jobs = unserved.count()
    unserved.put_into(counts.free)
    wanted = pilots_for(unserved.sizes(), fresh)
    decision = PressureDecision(0, "")
    with faults_contained("pilot_submission_failed", queue) as outcome:
        element = element_of(queue)
        # Where no pilot is wanted the batch system need not be asked.
        free_slots = element.capacity().free if wanted else 0
        decision = decide_pressure(_snapshot(queue, jobs, wanted, counts, free_slots))
        submit_pilots(queue, element, decision.submit)
    if outcome.fault:
        decision = PressureDecision(0, f"batch system: {outcome.fault}")
    unserved.put_into(Counter({fresh: decision.submit} if decision.submit else {}))
    return {"waiting_jobs": jobs, "submitted": decision.submit, "reason": decision.reason}


def _snapshot(
    queue: Queue, jobs: int, wanted: int, counts: PilotCounts, free_slots: int
) -> QueueSnapshot:
    return QueueSnapshot(
        is_enabled=True,
        waiting_jobs=jobs,
        wanted_pilots=wanted,
        pending_pilots=counts.pending,
        alive_pilots=counts.alive,
        max_pilots=queue.max_pilots,
        max_queued_pilots=queue.max_queued_pilots,
        free_slots=free_slots,
    )


def submit_pilots(queue: Queue, element: Element, count: int) -> None:
    """Submit a batch of pilots.

    The rows are written first, so that a crash during the submission leaves a batch name to ask
    the batch system for (`monitor.adopt_batches`), and never a pilot that nobody knows.
    """
    if count == 0:
        return
    batch = f"pilotage-{secrets.token_hex(8)}"
    keys = [secrets.token_urlsafe(32) for _ in range(count)]
    pilots = Pilot.objects.bulk_create(
        [
            Pilot(
                queue=queue,
                batch=batch,
                owner=queue.owner,
                owner_group=queue.owner_group,
                secret_sha256=secret_digest(key),
            )
            for key in keys
        ]
    )
    script = render_script(
        conf().public_url,
        agent_bundle().sha256,
        [PilotCredential(str(p.uuid), key) for p, key in zip(pilots, keys, strict=True)],
    )
    try:
        native_ids = element.submit(
            count,
            script,
            name=batch,
            cores=queue.cores,
            memory_mb=queue.memory_mb,
            gpus=queue.gpus,
            minutes=(queue.wall_time_s + _ENDING_MARGIN_S) // 60 + 1,
        )
    except Refused as error:
        # A clear no, so there is nothing to look for later; the pilots' pages tell it.
        reason = f"{_REFUSAL}: {error}"
        ids = [pilot.pk for pilot in pilots]
        lifecycle.apply("abort", ids, actor=_ACTOR, reason=reason, ended_at=Now())
        raise
    record_native_ids(pilots, native_ids)
    log.info("pilots_submitted", queue=str(queue), count=count, batch=batch)


def record_native_ids(pilots: list[Pilot], native_ids: list[str]) -> None:
    """Note the batch system's ids, in the order of submission: the pilots are queued."""
    known = list(zip(pilots, native_ids, strict=False))
    for pilot, native_id in known:
        pilot.native_id = native_id
    Pilot.objects.bulk_update([pilot for pilot, _ in known], ["native_id"], batch_size=1000)
    lifecycle.apply("queue", [pilot.pk for pilot, _ in known], actor=_ACTOR)

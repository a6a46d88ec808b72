"""The director: sends as many pilots to each queue as there is work for them."""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db.models import Count, Exists, OuterRef, Q
from django.db.models.functions import Now

from matching.pressure import PressureDecision, QueueSnapshot, decide_pressure
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.elements.protocol import Element, Refused
from wms.jobs.models import Attempt
from wms.pilots import lifecycle
from wms.pilots.bootstrap import PilotCredential, render_script
from wms.pilots.bundle import agent_bundle
from wms.pilots.faults import faults_contained
from wms.pilots.models import Pilot
from wms.pilots.services import secret_digest
from wms.pilots.states import ALIVE, PENDING, PilotState
from wms.sites.models import Queue
from wms.sites.selectors import element_of, enabled_queues, offered_resource
from wms.taskqueues.selectors import Demand, demands

log = structlog.get_logger(__name__)
_ACTOR = Actor.system("director")
_ENDING_MARGIN_S = 60
#: A batch system that said no is asked again after this time.
_BACK_OFF = timedelta(seconds=60)
_REFUSAL = "the batch system refused"
#: The task that runs the director's cycle.
DIRECT_TASK = "wms.pilots.direct"


@dataclass(frozen=True, slots=True)
class PilotCounts:
    """The living pilots of one queue."""

    pending: int = 0
    idle: int = 0
    alive: int = 0


def run_cycle(now: datetime) -> dict[str, Any]:
    """Compare waiting jobs with pilots, queue by queue, and submit what is missing.

    One query for the demand and one for the pilots, however many queues there are. A batch system
    that fails is reported and does not keep the others from being served. Jobs that fit several
    queues are counted for the first of them that takes a pilot for them.
    """
    counts = pilot_counts()
    refusals = recent_refusals(now)
    unserved: Counter[int] = Counter()
    waiting = demands()
    unserved.update({demand.task_queue_id: demand.waiting_jobs for demand in waiting})
    report: dict[str, Any] = {}
    for queue in enabled_queues(now):
        fitting = [d for d in waiting if not offered_resource(queue).refusal(d.needs)]
        if queue.pk in refusals:
            reason = f"waiting {_BACK_OFF.seconds} s after: {refusals[queue.pk]}"
            report[str(queue)] = {"submitted": 0, "reason": reason}
            continue
        report[str(queue)] = _serve(queue, fitting, unserved, counts.get(queue.pk, PilotCounts()))
    return {"queues": report}


def recent_refusals(now: datetime) -> dict[int, str]:
    """Queues whose batch system refused pilots a moment ago, with its reason."""
    refused = Pilot.objects.filter(
        state=PilotState.ABORTED, ended_at__gt=now - _BACK_OFF, state_reason__startswith=_REFUSAL
    )
    return dict(refused.order_by("pk").values_list("queue_id", "state_reason"))


def pilot_counts() -> dict[int, PilotCounts]:
    """Living pilots by queue; idle are those that run without an open attempt."""
    busy = Attempt.objects.filter(pilot_id=OuterRef("pk"), outcome="")
    rows = (
        Pilot.objects.filter(state__in=ALIVE)
        .annotate(is_busy=Exists(busy))
        .values("queue_id")
        .annotate(
            pending=Count("pk", filter=Q(state__in=PENDING)),
            idle=Count("pk", filter=Q(state=PilotState.RUNNING, is_busy=False)),
            alive=Count("pk"),
        )
    )
    return {row["queue_id"]: PilotCounts(row["pending"], row["idle"], row["alive"]) for row in rows}


def _serve(
    queue: Queue, fitting: list[Demand], unserved: Counter[int], counts: PilotCounts
) -> dict[str, Any]:
    jobs = sum(unserved[demand.task_queue_id] for demand in fitting)
    decision = PressureDecision(0, "")
    with faults_contained("pilot_submission_failed", queue) as outcome:
        element = element_of(queue)
        # Without waiting jobs the batch system need not be asked.
        free_slots = element.capacity().free if jobs else 0
        decision = decide_pressure(_snapshot(queue, jobs, counts, free_slots))
        submit_pilots(queue, element, decision.submit)
    if outcome.fault:
        decision = PressureDecision(0, f"batch system: {outcome.fault}")
    _count_as_served(fitting, unserved, counts.pending + counts.idle + decision.submit)
    return {"waiting_jobs": jobs, "submitted": decision.submit, "reason": decision.reason}


def _snapshot(queue: Queue, jobs: int, counts: PilotCounts, free_slots: int) -> QueueSnapshot:
    return QueueSnapshot(
        is_enabled=True,
        waiting_jobs=jobs,
        pending_pilots=counts.pending,
        idle_pilots=counts.idle,
        alive_pilots=counts.alive,
        max_pilots=queue.max_pilots,
        max_queued_pilots=queue.max_queued_pilots,
        free_slots=free_slots,
    )


def _count_as_served(fitting: list[Demand], unserved: Counter[int], pilots: int) -> None:
    for demand in fitting:
        taken = min(pilots, unserved[demand.task_queue_id])
        unserved[demand.task_queue_id] -= taken
        pilots -= taken


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
        [Pilot(queue=queue, batch=batch, secret_sha256=secret_digest(key)) for key in keys]
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

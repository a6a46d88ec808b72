"""The monitor: finds pilots that ended without a word or fell silent, and frees their jobs."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import transaction
from django.db.models import F

from wms.core.actors import Actor
from wms.core.conf import conf
from wms.elements.protocol import BatchState, ElementError
from wms.elements.protocol import PilotState as BatchPilot
from wms.jobs import services as jobs
from wms.jobs.models import Attempt
from wms.pilots import lifecycle
from wms.pilots.director import record_native_ids
from wms.pilots.models import Pilot
from wms.pilots.states import ALIVE, PENDING, PilotState
from wms.sites.models import Queue
from wms.sites.selectors import element_of

log = structlog.get_logger(__name__)
_ACTOR = Actor.system("pilot-monitor")
_ENDED = frozenset({BatchState.DONE, BatchState.FAILED, BatchState.CANCELLED})
#: A stalled pilot is given up after so many times the silence that made it stalled.
_GIVE_UP_FACTOR = 2
#: So many answers in a row must not know a pilot before it is taken for gone.
_MISSING_LIMIT = 3
#: A submission whose answer was never stored is looked for after this time.
_ADOPT_AFTER = timedelta(seconds=30)
#: So long the batch system keeps the log of an ended pilot for us.
_LOG_KEPT = timedelta(days=1)
#: A pilot that the batch system reports as ended may still be saying goodbye.
_GOODBYE = timedelta(seconds=5)


def run_cycle(now: datetime) -> dict[str, Any]:
    """One round: adopt lost submissions, ask every batch system once, judge the silent pilots."""
    report: dict[str, Any] = {"adopted": adopt_batches(now), "queues": {}}
    by_queue: dict[int, list[Pilot]] = defaultdict(list)
    for pilot in Pilot.objects.filter(state__in=ALIVE).exclude(native_id="").order_by("pk"):
        by_queue[pilot.queue_id].append(pilot)
    for queue in Queue.objects.filter(pk__in=by_queue).select_related("site"):
        report["queues"][str(queue)] = _poll(queue, by_queue[queue.pk], now)
    report["stalled"] = stall_silent(now)
    report["given_up"] = give_up_stalled(now)
    report["forgotten"] = forget_ended(now)
    return report


def adopt_batches(now: datetime) -> int:
    """Find out what became of submissions whose answer was lost; return how many were found."""
    lost = Pilot.objects.filter(
        state=PilotState.SUBMITTED, native_id="", created_at__lt=now - _ADOPT_AFTER
    )
    batches: dict[tuple[int, str], list[Pilot]] = defaultdict(list)
    for pilot in lost.order_by("pk"):
        batches[pilot.queue_id, pilot.batch].append(pilot)
    queues = Queue.objects.select_related("site").in_bulk([queue_id for queue_id, _ in batches])
    adopted = 0
    for (queue_id, batch), pilots in batches.items():
        try:
            native_ids = element_of(queues[queue_id]).adopt(batch)
        except ElementError as error:
            log.warning("batch_adoption_failed", queue=str(queues[queue_id]), error=str(error))
            continue
        record_native_ids(pilots, native_ids)
        adopted += len(native_ids)
        never_started = [pilot.pk for pilot in pilots[len(native_ids) :]]
        lifecycle.apply(
            "abort", never_started, actor=_ACTOR, reason="the submission failed", ended_at=now
        )
    return adopted


def _poll(queue: Queue, pilots: list[Pilot], now: datetime) -> dict[str, Any]:
    try:
        element = element_of(queue)
        states = element.status([pilot.native_id for pilot in pilots])
    except ElementError as error:
        # No answer means that nothing is known: no state changes.
        log.warning("pilot_poll_failed", queue=str(queue), error=str(error))
        return {"polled": 0, "error": str(error)}
    missing = [p.pk for p in pilots if states[p.native_id].state == BatchState.MISSING]
    Pilot.objects.filter(pk__in=missing).update(missing_polls=F("missing_polls") + 1)
    found_again = [p.pk for p in pilots if p.missing_polls and p.pk not in set(missing)]
    Pilot.objects.filter(pk__in=found_again).update(missing_polls=0)
    ended = [pilot for pilot in pilots if _has_ended(pilot, states[pilot.native_id], now)]
    for pilot in ended:
        _declare_ended(pilot, states[pilot.native_id], now)
    return {"polled": len(pilots), "ended": len(ended)}


def _has_ended(pilot: Pilot, batch: BatchPilot, now: datetime) -> bool:
    if batch.state == BatchState.MISSING:
        return pilot.missing_polls + 1 >= _MISSING_LIMIT
    heard_just_now = pilot.heartbeat_at is not None and now - pilot.heartbeat_at < _GOODBYE
    return batch.state in _ENDED and not heard_just_now


@transaction.atomic
def _declare_ended(pilot: Pilot, batch: BatchPilot, now: datetime) -> None:
    """The batch system says that the pilot is over, but the pilot never said so itself."""
    detail = ", ".join(
        part
        for part in (
            str(batch.state),
            batch.reason or (f"exit code {batch.exit_code}" if batch.exit_code is not None else ""),
        )
        if part
    )
    reason = f"ended without a word; the batch system says: {detail}"
    event = "abort" if pilot.state in PENDING else "fail"
    lifecycle.apply(event, [pilot.pk], actor=_ACTOR, reason=reason, ended_at=now)
    jobs.reschedule_jobs_of_pilots(
        [pilot.pk], outcome=Attempt.Outcome.LOST, actor=_ACTOR, reason=f"the pilot {reason}"
    )


@transaction.atomic
def stall_silent(now: datetime) -> int:
    """Mark running pilots without a heartbeat for too long, and their jobs, as stalled."""
    limit_s = conf().pilot_stalled_after_s
    silent = list(
        Pilot.objects.filter(
            state=PilotState.RUNNING, heartbeat_at__lt=now - timedelta(seconds=limit_s)
        ).values_list("pk", flat=True)
    )
    reason = f"no heartbeat for {limit_s:g} s"
    applied = lifecycle.apply("stall", silent, actor=_ACTOR, reason=reason)
    jobs.stall_jobs_of_pilots(applied.changed, actor=_ACTOR, reason=f"the pilot sent {reason}")
    return len(applied.changed)


@transaction.atomic
def give_up_stalled(now: datetime) -> int:
    """Give the jobs of pilots that stayed silent for long after they stalled to other pilots.

    The time counts from when they were marked: after an outage of our own every pilot looks
    silent, and needs some time to be heard again.
    """
    limit_s = _GIVE_UP_FACTOR * conf().pilot_stalled_after_s
    silent = list(
        Pilot.objects.filter(
            state=PilotState.STALLED, state_since__lt=now - timedelta(seconds=limit_s)
        ).values_list("pk", flat=True)
    )
    reason = f"no heartbeat for {limit_s:g} s after it had stalled"
    applied = lifecycle.apply("fail", silent, actor=_ACTOR, reason=reason, ended_at=now)
    jobs.reschedule_jobs_of_pilots(
        applied.changed,
        outcome=Attempt.Outcome.LOST,
        actor=_ACTOR,
        reason=f"the pilot sent {reason}",
    )
    return len(applied.changed)


def forget_ended(now: datetime) -> int:
    """Let the batch systems clean up after pilots that ended some time ago; return how many."""
    ended = Pilot.objects.filter(is_forgotten=False, ended_at__lt=now - _LOG_KEPT).exclude(
        native_id=""
    )
    by_queue: dict[int, list[Pilot]] = defaultdict(list)
    for pilot in ended.order_by("pk")[:1000]:
        by_queue[pilot.queue_id].append(pilot)
    forgotten = 0
    for queue in Queue.objects.filter(pk__in=by_queue).select_related("site"):
        pilots = by_queue[queue.pk]
        try:
            element_of(queue).forget([pilot.native_id for pilot in pilots])
        except ElementError as error:
            log.warning("pilot_cleanup_failed", queue=str(queue), error=str(error))
            continue
        forgotten += Pilot.objects.filter(pk__in=[p.pk for p in pilots]).update(is_forgotten=True)
    return forgotten

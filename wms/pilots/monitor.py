"""The monitor: finds pilots that ended without a word or fell silent, and frees their jobs."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from wms.core.actors import Actor
from wms.core.conf import conf
from wms.elements.protocol import BatchState
from wms.elements.protocol import PilotState as BatchPilot
from wms.jobs import services as jobs
from wms.jobs.models import Attempt
from wms.pilots import lifecycle
from wms.pilots.director import record_native_ids
from wms.pilots.faults import faults_contained
from wms.pilots.models import Pilot
from wms.pilots.states import ALIVE, PENDING, PilotState
from wms.sites.models import Queue
from wms.sites.selectors import element_of

_ACTOR = Actor.system("pilot-monitor")
_ENDED = frozenset({BatchState.DONE, BatchState.FAILED, BatchState.CANCELLED})
#: A stalled pilot is given up after so many times the silence that made it stalled.
_GIVE_UP_FACTOR = 2
#: Or after this time, as long as no other pilot is heard either.
_OUTAGE_LIMIT = timedelta(minutes=45)
#: So many answers in a row must not know a pilot before it is taken for gone.
_MISSING_LIMIT = 3
#: A submission whose answer was never stored is looked for after this time.
_ADOPT_AFTER = timedelta(minutes=2)
_FORGOTTEN_AT_ONCE = 500
#: So long the batch system keeps the log of an ended pilot for us.
_LOG_KEPT = timedelta(days=1)
#: A pilot that was heard within so many heartbeats lives, or is saying goodbye.
_BEATS_WAITED = 2


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
    batches = set(lost.values_list("queue_id", "batch"))
    queues = Queue.objects.select_related("site").in_bulk([queue_id for queue_id, _ in batches])
    adopted = 0
    for queue_id, batch in sorted(batches):
        with faults_contained("batch_adoption_failed", queues[queue_id]):
            adopted += _adopt(queues[queue_id], batch, now)
    return adopted


def _adopt(queue: Queue, batch: str, now: datetime) -> int:
    """Ask for one batch; its ids come in the order of submission, whoever called in meanwhile."""
    native_ids = element_of(queue).adopt(batch)
    pilots = list(Pilot.objects.filter(queue=queue, batch=batch).order_by("pk"))
    record_native_ids(pilots, native_ids)
    never_started = [pilot.pk for pilot in pilots[len(native_ids) :]]
    lifecycle.apply(
        "abort", never_started, actor=_ACTOR, reason="the submission failed", ended_at=now
    )
    return len(native_ids)


def _poll(queue: Queue, pilots: list[Pilot], now: datetime) -> dict[str, Any]:
    states: dict[str, BatchPilot] = {}
    with faults_contained("pilot_poll_failed", queue) as outcome:
        states = element_of(queue).status([pilot.native_id for pilot in pilots])
    if outcome.fault:
        # No answer means that nothing is known: no state changes.
        return {"polled": 0, "error": outcome.fault}
    missing = [p.pk for p in pilots if states[p.native_id].state == BatchState.MISSING]
    Pilot.objects.filter(pk__in=missing).update(missing_polls=F("missing_polls") + 1)
    found_again = [p.pk for p in pilots if p.missing_polls and p.pk not in set(missing)]
    Pilot.objects.filter(pk__in=found_again).update(missing_polls=0)
    ended = [pilot for pilot in pilots if _has_ended(pilot, states[pilot.native_id], now)]
    for pilot in ended:
        _declare_ended(pilot, states[pilot.native_id], now)
    return {"polled": len(pilots), "ended": len(ended)}


def _has_ended(pilot: Pilot, batch: BatchPilot, now: datetime) -> bool:
    """True when batch system and silence agree: a pilot that is heard lives, whatever is said."""
    is_heard = pilot.heartbeat_at is not None and now - pilot.heartbeat_at < timedelta(
        seconds=_BEATS_WAITED * conf().agent_heartbeat_s
    )
    if is_heard:
        return False
    if batch.state == BatchState.MISSING:
        return pilot.missing_polls + 1 >= _MISSING_LIMIT
    return batch.state in _ENDED


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
    applied = lifecycle.apply(event, [pilot.pk], actor=_ACTOR, reason=reason, ended_at=now)
    jobs.reschedule_jobs_of_pilots(
        applied.changed, outcome=Attempt.Outcome.LOST, actor=_ACTOR, reason=f"the pilot {reason}"
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
    """Give the jobs of pilots that stayed silent long after they stalled to other pilots.

    While nobody else is heard either, the silence is probably our own: then it may last much
    longer, because the pilots go on with their payloads and report when they can.
    """
    limit = _GIVE_UP_FACTOR * timedelta(seconds=conf().pilot_stalled_after_s)
    if not _others_are_heard(now, limit):
        limit = max(limit, _OUTAGE_LIMIT)
    silent = Pilot.objects.filter(state=PilotState.STALLED, state_since__lt=now - limit)
    reason = f"no heartbeat for {limit.total_seconds():g} s after it had stalled"
    applied = lifecycle.apply(
        "fail", list(silent.values_list("pk", flat=True)), actor=_ACTOR, reason=reason, ended_at=now
    )
    jobs.reschedule_jobs_of_pilots(
        applied.changed,
        outcome=Attempt.Outcome.LOST,
        actor=_ACTOR,
        reason=f"the pilot sent {reason}",
    )
    return len(applied.changed)


def _others_are_heard(now: datetime, since: timedelta) -> bool:
    """True when some pilot has been heard all this time: so others could have been."""
    return Pilot.objects.filter(
        state=PilotState.RUNNING,
        state_since__lt=now - since,
        heartbeat_at__gte=now - timedelta(seconds=conf().pilot_stalled_after_s),
    ).exists()


def forget_ended(now: datetime) -> int:
    """Let the batch systems clean up after pilots that ended some time ago; return how many."""
    ended = Pilot.objects.filter(is_forgotten=False, ended_at__lt=now - _LOG_KEPT).exclude(
        native_id=""
    )
    concerned = Queue.objects.filter(pk__in=ended.values("queue")).select_related("site")
    forgotten = 0
    for queue in concerned:
        pilots = list(ended.filter(queue=queue).order_by("pk")[:_FORGOTTEN_AT_ONCE])
        with faults_contained("pilot_cleanup_failed", queue):
            element_of(queue).forget([pilot.native_id for pilot in pilots])
            forgotten += Pilot.objects.filter(pk__in=[p.pk for p in pilots]).update(
                is_forgotten=True
            )
    return forgotten

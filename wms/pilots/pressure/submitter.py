"""Submitter: the turn of a queue, which tops up waiting pilots to its requests, or removes some.

Each frontend that has pilots there has a request; who lacks most of its share is served first.
Turns of one queue never overlap, and no turn waits for that of another queue. What a turn did is
stored with the request; a fault makes the queue back off, with the credential that was shown.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, F, Q

from matching.plurals import counted, pilots_are
from matching.pressure.formulas import request_lease
from matching.pressure.removal import Counts, FactoryLimits, Turn, factory_request
from wms.core.database.locks import advisory_lock
from wms.elements.protocol import BatchState, Element, Refused
from wms.pilots.credentials.choice import Chosen, chosen_at, element_with
from wms.pilots.factories.submission import ordered_by, submit_orders
from wms.pilots.models import Pilot
from wms.pilots.monitoring.fault_isolation import (
    TurnClock,
    faults_contained,
    queue_lock,
    task_timeout_noted,
)
from wms.pilots.pressure.backoff import Kind, back_offs, described, note_failure, note_success
from wms.pilots.pressure.identities import draw_owners
from wms.pilots.pressure.remover import (
    removal_due,
    remove_expired,
    remove_surplus,
    remove_unneeded,
)
from wms.pilots.pressure.snapshot import Owner, free_in_scopes
from wms.pilots.pressure.submission import submit_pilots
from wms.pilots.pressure_models import PressureRequest
from wms.pilots.states import ALIVE, PENDING, PilotTest
from wms.sites.models import Queue

_MOST = "at most {} in one turn"
#: No batch is begun later in a turn, so that its task has time left for one slow answer.
_BATCHES_FOR_S = 120.0
#: The task that gives a queue its turn.
SERVE_TASK = "wms.pilots.serve_queue"


@dataclass(slots=True)
class TurnReport:
    """Report of a turn: what it did, and what kept it from doing more."""

    submitted: int = 0
    removed: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, other: TurnReport) -> None:
        """Count in what was done for another frontend."""
        self.submitted += other.submitted
        self.removed += other.removed
        self.reasons += other.reasons


def serve(
    queue_id: int, now: datetime, *, clock: Callable[[], float] = time.monotonic
) -> TurnReport | None:
    """Give a queue its turn; None when its lock is taken, or there is no request for it."""
    with advisory_lock(queue_lock(queue_id)) as is_held:
        requests = _requests(queue_id) if is_held else []
        if not requests:
            return None
        watch = TurnClock(now, clock)
        whole = TurnReport()
        for request in requests:
            if whole.removed:
                request.removed_at = now
            most = request.queue.max_submits - whole.submitted
            chosen = chosen_at(request.queue, request.frontend_id, now)
            shown = chosen.credential_id
            with task_timeout_noted(request.queue, Kind.SUBMIT, watch, shown):
                report = _turn(request, chosen, watch, most)
            _store(request, report, now)
            whole.add(report)
        return whole


def _requests(queue_id: int) -> list[PressureRequest]:
    """Requests for a queue, first of those whose level is met least.

    Each tells when pilots of the queue were taken back last, whosever they were.
    """
    requests = list(
        PressureRequest.objects.select_related("queue__site", "queue__owner_group", "frontend")
        .filter(queue=queue_id)
        .order_by("pk")
    )
    if len(requests) < 2:
        return requests
    removed = [each.removed_at for each in requests if each.removed_at]
    for each in requests:
        each.removed_at = max(removed, default=None)
    waiting = Pilot.objects.filter(queue=queue_id, state__in=PENDING).order_by()
    queued = dict(waiting.values_list("frontend_id").annotate(Count("pk")))

    def met(request: PressureRequest) -> float:
        return queued.get(request.frontend_id, 0) / request.granted if request.granted else 0.0

    return sorted(requests, key=met)


def _turn(request: PressureRequest, chosen: Chosen, watch: TurnClock, most: int) -> TurnReport:
    """Give one frontend its part of a turn, in which it may submit so many pilots at most."""
    report = TurnReport()
    queue, now = request.queue, watch.start
    since_s = (now - request.updated_at).total_seconds()
    if not request_lease(age=since_s).honoured:
        report.reasons.append(f"the request is over: it was not renewed for {since_s:.0f} s")
        report.removed = remove_expired(request, now)
        request.expired_at = request.expired_at or now
        return report
    pausing = back_offs(now, [Kind.SUBMIT, Kind.START]).get((queue.pk, chosen.credential_id))
    counts = entry_counts(queue, request.frontend_id)
    turn = _decided(request, counts, most)
    if chosen.refusal:
        report.reasons.append(chosen.refusal)
    elif pausing is not None:
        report.reasons.append(described(pausing))
    elif turn.action == "submit":
        _submit(request, chosen.credential_id, turn, report, watch, most)
    elif request.granted:
        report.reasons.append(_why_none(request, turn, counts, most))
    if turn.action == "cleanup" and removal_due(request, queue, now):
        report.removed = remove_surplus(request, counts.own, now)
    if queue.has_owners and not report.removed:
        report.removed = remove_unneeded(request, now)
    return report


@dataclass(frozen=True, slots=True)
class EntryCounts:
    """Pilots of a queue that have not finally ended: those of one frontend, and of all."""

    own: Counts
    whole: Counts


def entry_counts(queue: Queue, frontend_id: int | None) -> EntryCounts:
    """All pilots of a queue that have not finally ended: waiting, running, and held ones.

    A test pilot that takes no jobs never counts as one that waits: it meets no demand.
    """
    is_waiting = Q(state__in=PENDING) & ~Q(test=PilotTest.CHECKS)
    is_held = is_waiting & Q(batch_state=BatchState.HELD)
    rows = (
        Pilot.objects.filter(queue=queue, state__in=ALIVE)
        .order_by()
        .values_list("frontend_id")
        .annotate(
            waiting=Count("pk", filter=is_waiting),
            running=Count("pk", filter=~is_waiting),
            held=Count("pk", filter=is_held),
        )
    )
    # A held pilot has not left: it counts as one that waits.
    by_frontend = {pk: Counts(idle=i, running=r, held=h) for pk, i, r, h in rows}
    whole = Counts(
        idle=sum(each.idle for each in by_frontend.values()),
        running=sum(each.running for each in by_frontend.values()),
        held=sum(each.held for each in by_frontend.values()),
    )
    return EntryCounts(by_frontend.get(frontend_id, Counts()), whole)


def _decided(request: PressureRequest, counts: EntryCounts, most: int) -> Turn:
    queue = request.queue
    limits = FactoryLimits(
        entry_max_glideins=queue.max_pilots,
        entry_max_idle=queue.max_queued_pilots,
        entry_max_held=queue.max_held_pilots,
        class_max_glideins=queue.max_pilots,
        class_max_idle=queue.max_queued_pilots,
        class_max_held=queue.max_held_pilots,
        max_submits=max(most, 0),
        cluster_size=queue.batch_size,
    )
    return factory_request(
        req_min_idle=request.granted,
        req_max_glideins=request.ceiling,
        mine=counts.own,
        entry=counts.whole,
        class_=counts.own,
        limits=limits,
    )


def _why_none(request: PressureRequest, turn: Turn, counts: EntryCounts, most: int) -> str:
    queue, own, whole = request.queue, counts.own, counts.whole
    if most <= 0:
        return _MOST.format(queue.max_submits)
    if turn.action == "sanitize" or whole.held >= queue.max_held_pilots:
        held = counted(whole.held, "is", "are")
        return f"limit of held pilots {queue.max_held_pilots}: {held} held"
    if own.idle >= request.granted:
        return f"{counted(own.idle, 'pilot waits', 'pilots wait')} already"
    if own.total >= request.ceiling or own == whole:
        return f"ceiling {request.ceiling}: {pilots_are(own.total, 'there')}"
    return f"other frontends' pilots fill the queue: {pilots_are(whole.total, 'there')}"


def _submit(
    request: PressureRequest,
    credential_id: int | None,
    turn: Turn,
    report: TurnReport,
    watch: TurnClock,
    most: int,
) -> None:
    """Submit in batches, until the batch system refuses, does not answer, or takes its time."""
    queue = request.queue
    if turn.submit == most:
        report.reasons.append(_MOST.format(queue.max_submits))
    with faults_contained("pilot_submission_failed", queue) as outcome:
        element = element_with(queue, credential_id)
        for count in _that_fit(element, turn, report):
            wanted = min(count, _still_asked(request, report, watch))
            sent = _send(request, element, credential_id, wanted, report, watch.now)
            if not sent:
                break
            report.submitted += sent
    if outcome.fault:
        jitter = random.uniform(-1, 1)
        contact = note_failure(
            queue,
            Kind.SUBMIT,
            outcome.fault,
            now=watch.now,
            jitter=jitter,
            credential_id=credential_id,
        )
        report.reasons.append(described(contact))
    elif report.submitted:
        note_success(queue, Kind.SUBMIT, now=watch.now, credential_id=credential_id)


def _send(
    request: PressureRequest,
    element: Element,
    credential_id: int | None,
    count: int,
    report: TurnReport,
    now: datetime,
) -> int:
    """Submit so many pilots, or as many as somebody is there for; return how many."""
    queue, frontend_id = request.queue, request.frontend_id
    if remote := ordered_by(frontend_id):
        return submit_orders(remote, queue, element, count, now, credential_id) if count else 0
    owners = _owners(request, count, report)
    if owners:
        submit_pilots(queue, element, len(owners), owners, frontend_id, credential_id)
    return len(owners)


def _owners(request: PressureRequest, count: int, report: TurnReport) -> Sequence[Owner | None]:
    """The owner of each new pilot; None for the identity of the queue."""
    if not request.queue.has_owners:
        return [None] * count
    latest = PressureRequest.objects.select_related("queue").get(pk=request.pk)
    owners, limits = draw_owners(latest, count)
    report.reasons += [text for text in limits if text not in report.reasons]
    return owners


def _still_asked(request: PressureRequest, report: TurnReport, watch: TurnClock) -> int:
    """Pilots that are still wanted of a turn that is under way.

    The request when it began may have been promised to other queues meanwhile.
    """
    if watch.elapsed_s > _BATCHES_FOR_S:
        report.reasons.append(f"the rest comes later: a turn submits for {_BATCHES_FOR_S:.0f} s")
        return 0
    latest = PressureRequest.objects.select_related("queue").filter(pk=request.pk).first()
    if latest is None:
        report.reasons.append("the frontend is sent no more pilots here since the turn began")
        return 0
    counts = entry_counts(request.queue, request.frontend_id)
    turn = _decided(latest, counts, request.queue.max_submits)
    if not turn.submit:
        report.reasons.append("less is asked for since the turn began")
        return 0
    free, limit_text = free_in_scopes(request.queue, request.frontend)
    if free < turn.submit and limit_text not in report.reasons:
        report.reasons.append(limit_text)
    return min(turn.submit, free)


def _that_fit(element: Element, turn: Turn, report: TurnReport) -> Sequence[int]:
    """Batches, cut to what a batch system takes that is down, or lets no pilot wait."""
    capacity = element.capacity()
    if not capacity.is_up:
        raise Refused("it takes no pilots now")
    if capacity.can_queue or turn.submit <= capacity.free:
        return turn.clusters
    report.reasons.append(f"{capacity.free} of {capacity.total} slots of the batch system are free")
    free = max(capacity.free, 0)
    return [free] if free else []


def _store(request: PressureRequest, report: TurnReport, now: datetime) -> None:
    facts = {
        "submitted": report.submitted,
        "turn_reasons": report.reasons,
        "served_at": now,
        "expired_at": request.expired_at,
    }
    if report.submitted or report.removed:
        facts["submitted_since"] = F("submitted_since") + report.submitted
        facts["removed_since"] = F("removed_since") + report.removed
    if report.removed:
        facts["removed_at"] = now
    PressureRequest.objects.filter(pk=request.pk).update(**facts)

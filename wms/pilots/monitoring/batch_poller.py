"""Batch poller: asks a queue's batch system for the states of its pilots, and acts on them.

Submits the queue's test pilot, if one is asked for. Ends pilots that are gone, whose jobs wait
again, cancels held and stuck ones, finds those of submissions whose answer was lost, and lets the
batch system forget ended ones. Failures, of answers or of starts, make the queue back off. A
doubtful answer is not acted upon. The batch system only explains; a pilot that is heard lives,
whatever is said of it.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import Q

from matching.plurals import counted
from matching.pressure.formulas import LEASE_S
from matching.pressure.held_pilots import held_decision, queue_self_removal, stale_decision
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.database.locks import advisory_lock
from wms.elements.protocol import BatchState, Element
from wms.elements.protocol import PilotState as BatchPilot
from wms.jobs.attempts import rescheduling
from wms.jobs.models import Attempt
from wms.jobs.states import JobCause
from wms.pilots import lifecycle
from wms.pilots.factories.batch_view import end_remote, keep_logs, note_remote_starts
from wms.pilots.models import Pilot
from wms.pilots.monitoring.access import Access, shown_to
from wms.pilots.monitoring.adoption import REMINDED_FOR, adopt_batches
from wms.pilots.monitoring.doubts import doubt_about, known, living, raise_alarm
from wms.pilots.monitoring.fault_isolation import (
    TurnClock,
    faults_contained,
    queue_lock,
    task_timeout_noted,
)
from wms.pilots.pressure.backoff import Kind, note_failure, note_success
from wms.pilots.pressure.remover import cancel_pending
from wms.pilots.states import ALIVE, PENDING, PilotState
from wms.pilots.testing.submission import submit_requested_test
from wms.sites.factories import FACTORY
from wms.sites.models import Queue

log = structlog.get_logger(__name__)
_ACTOR = Actor.system("pilot-monitor")
#: The task that attends to the pilots of a queue.
POLL_TASK = "wms.pilots.attend_queue"

_ENDED = frozenset({BatchState.DONE, BatchState.FAILED, BatchState.CANCELLED})
#: Of a node's name, and of an exit code, what a column has room for.
_LONGEST_NODE = 255
_LARGEST_CODE = 2**31 - 1
#: Number of pilots in one question.
_PORTION = 2000
#: Number of answers in a row, and their time span, that miss a pilot before it is gone.
_MISSING_LIMIT = 3
_MISSING_FOR = timedelta(seconds=LEASE_S)
_FORGOTTEN_AT_ONCE = 500
#: Time for which the batch system keeps the log of an ended pilot for us.
LOG_KEPT = timedelta(days=1)
#: A pilot that was heard within so many heartbeats lives, or is saying goodbye.
_BEATS_WAITED = 2
#: An answer may take this part of the time between two questions.
_BUSY_PART = 0.05
_LONGEST_PERIOD_S = 300.0


@dataclass(frozen=True, slots=True)
class PollResult:
    """Result of a poll of a queue; `fault` says why nothing is known of its pilots."""

    adopted: int = 0
    polled: int = 0
    ended: int = 0
    removed: int = 0
    fault: str = ""


def poll(
    queue_id: int,
    now: datetime,
    *,
    period_s: float = 5.0,
    clock: Callable[[], float] = time.monotonic,
) -> PollResult | None:
    """Ask a queue's batch system for its pilots; None when its lock is taken.

    It is asked again after `period_s`, or later where answers take long.
    """
    with advisory_lock(queue_lock(queue_id)) as is_held:
        queue = Queue.objects.select_related("site").filter(pk=queue_id).first()
        if not is_held or queue is None:
            return None
        watch = TurnClock(now, clock)
        with task_timeout_noted(queue, Kind.POLL, watch):
            submit_requested_test(queue, now)
            results = [
                _poll(Access(queue, shown), watch, period_s) for shown in shown_to(queue, now)
            ]
    return _sum(results)


def _sum(results: Sequence[PollResult]) -> PollResult:
    return PollResult(
        adopted=sum(each.adopted for each in results),
        polled=sum(each.polled for each in results),
        ended=sum(each.ended for each in results),
        removed=sum(each.removed for each in results),
        fault="; ".join(each.fault for each in results if each.fault),
    )


def _poll(access: Access, watch: TurnClock, period_s: float) -> PollResult:
    result = _asked(access, watch, period_s)
    if not result.fault:
        forget_ended(access, watch.start)
    return result


def _asked(access: Access, watch: TurnClock, period_s: float) -> PollResult:
    queue, shown = access.queue, access.credential_id
    now, adopted = watch.start, 0
    states: dict[str, BatchPilot] = {}
    pilots: list[Pilot] = []
    with faults_contained("pilot_poll_failed", queue) as outcome:
        element = access.element()
        adopted = adopt_batches(queue, element, now, shown)
        pilots = _asked_for(access, now)
        states = _states(element, pilots)
    if outcome.fault:
        # No answer means that nothing is known: no state changes.
        jitter = random.uniform(-1, 1)
        why = outcome.fault
        note_failure(queue, Kind.POLL, why, now=watch.now, jitter=jitter, credential_id=shown)
        return PollResult(adopted=adopted, fault=outcome.fault)
    took_s = watch.elapsed_s
    pause_s = min(max(period_s, took_s / _BUSY_PART), _LONGEST_PERIOD_S)
    doubt = doubt_about(access, living(pilots), states, now, age_s=took_s)
    if doubt:
        raise_alarm(access, doubt, watch, pause_s)
        return PollResult(adopted=adopted, polled=len(pilots), fault=doubt)
    next_at = watch.now + timedelta(seconds=pause_s)
    note_success(queue, Kind.POLL, now=now, next_at=next_at, credential_id=shown)
    return _act(access, pilots, states, now, adopted)


def _asked_for(access: Access, now: datetime) -> list[Pilot]:
    """Living pilots, and those that were to be cancelled a short time ago."""
    cancelled = Q(state=PilotState.REMOVED, is_forgotten=False, ended_at__gt=now - REMINDED_FOR)
    asked = access.pilots.filter(Q(state__in=ALIVE) | cancelled)
    return list(asked.exclude(native_id="").defer("node", "load").order_by("pk"))


def _states(element: Element, pilots: Sequence[Pilot]) -> dict[str, BatchPilot]:
    """State of each pilot at the batch system; one that its answer leaves out is missing."""
    ids = [pilot.native_id for pilot in pilots]
    states: dict[str, BatchPilot] = {}
    for start in range(0, len(ids), _PORTION):
        portion = ids[start : start + _PORTION]
        answer = element.status(portion)
        missing = BatchPilot(BatchState.MISSING)
        states |= {each: answer.get(each, missing) for each in portion}
    return states


def _act(
    access: Access,
    pilots: Sequence[Pilot],
    states: Mapping[str, BatchPilot],
    now: datetime,
    adopted: int,
) -> PollResult:
    cancelled = [pilot for pilot in pilots if pilot.state == PilotState.REMOVED]
    alive = living(pilots)
    queue = access.queue
    access.contacts.update(seen_pilots=known(alive, states))
    _remind(access, cancelled, states)
    _note_states([*alive, *filter(_is_unsettled, cancelled)], states, now)
    note_remote_starts(alive, states)
    ended = [pilot for pilot in alive if _has_ended(pilot, states[pilot.native_id], now)]
    keep_logs(access, ended, states)
    for pilot in ended:
        _declare_ended(pilot, states[pilot.native_id], now)
    _note_starts(access, ended, states, now)
    over = {pilot.pk for pilot in ended}
    removed = _remove_stuck(queue, [pilot for pilot in alive if pilot.pk not in over], states, now)
    return PollResult(adopted, polled=len(pilots), ended=len(ended), removed=removed)


def unsettled_removals(now: datetime) -> Q:
    """Condition for removed pilots of which the batch system has not said that they are gone.

    It is asked for them for some time, also where no other pilot is left.
    """
    lately = Q(state=PilotState.REMOVED, is_forgotten=False, ended_at__gt=now - REMINDED_FOR)
    return lately & Q(missing_polls=0) & ~Q(native_id="") & ~Q(batch_state__in=_ENDED)


def _is_unsettled(removed: Pilot) -> bool:
    return not removed.missing_polls and removed.batch_state not in _ENDED


def _remind(access: Access, cancelled: Sequence[Pilot], states: Mapping[str, BatchPilot]) -> None:
    """Cancel pilots again that are still there although they were cancelled."""
    there = [
        pilot.native_id
        for pilot in cancelled
        if states[pilot.native_id].state not in {*_ENDED, BatchState.MISSING}
    ]
    if there:
        with faults_contained("pilot_cancel_failed", access.queue):
            access.element().cancel(there)


def _note_states(pilots: Iterable[Pilot], states: Mapping[str, BatchPilot], now: datetime) -> None:
    """Store the batch system's state of each pilot, where it has changed."""
    changed = []
    for pilot in pilots:
        if _note_state(pilot, states[pilot.native_id], now):
            changed.append(pilot)
    columns = [
        "missing_polls", "missing_since", "batch_state", "batch_reason", "batch_since", "holds",
        "batch_node", "batch_exit_code",
    ]  # fmt: skip
    Pilot.objects.bulk_update(changed, columns, batch_size=1000)


def _note_state(pilot: Pilot, batch_pilot: BatchPilot, now: datetime) -> bool:
    """Set the state in the row that was read; tell whether it has changed."""
    if batch_pilot.state == BatchState.MISSING:
        pilot.missing_polls += 1
        pilot.missing_since = pilot.missing_since or now
        return True
    node = batch_pilot.node[:_LONGEST_NODE] or pilot.batch_node
    code = batch_pilot.exit_code
    if code is None or abs(code) > _LARGEST_CODE:
        code = pilot.batch_exit_code
    told = (batch_pilot.state, batch_pilot.reason, node, code)
    known_words = (pilot.batch_state, pilot.batch_reason, pilot.batch_node, pilot.batch_exit_code)
    if told == known_words and not pilot.missing_polls:
        return False
    pilot.missing_polls, pilot.missing_since = 0, None
    if pilot.batch_state != batch_pilot.state:
        pilot.batch_since = now
        pilot.holds += batch_pilot.state == BatchState.HELD
    pilot.batch_state, pilot.batch_reason = str(batch_pilot.state), batch_pilot.reason
    pilot.batch_node, pilot.batch_exit_code = node, code
    return True


def _is_heard(pilot: Pilot, now: datetime) -> bool:
    waited = timedelta(seconds=_BEATS_WAITED * conf().agent_heartbeat_s)
    return pilot.heartbeat_at is not None and now - pilot.heartbeat_at < waited


def _has_ended(pilot: Pilot, batch: BatchPilot, now: datetime) -> bool:
    """True when batch system and silence agree."""
    if _is_heard(pilot, now):
        return False
    if batch.state == BatchState.MISSING:
        since = pilot.missing_since or now
        return pilot.missing_polls >= _MISSING_LIMIT and now - since >= _MISSING_FOR
    return batch.state in _ENDED


@transaction.atomic
def _declare_ended(pilot: Pilot, batch: BatchPilot, now: datetime) -> None:
    """End pilots that the batch system reports as over, without a last message of their own."""
    reason = f"ended without a word; the batch system says: {_words(batch)}"
    if pilot.is_remote:
        end_remote(pilot, batch.state, _words(batch), now)
        return
    event = "abort" if pilot.state in PENDING else "fail"
    applied = lifecycle.apply(event, [pilot.pk], actor=_ACTOR, reason=reason, ended_at=now)
    rescheduling.reschedule_jobs_of_pilots(
        applied.changed,
        outcome=Attempt.Outcome.LOST,
        actor=_ACTOR,
        reason=f"the pilot {reason}",
        cause=JobCause.PILOT_FAILED,
    )


def _words(batch: BatchPilot) -> str:
    code = f"exit code {batch.exit_code}" if batch.exit_code is not None else ""
    return ", ".join(filter(None, (str(batch.state), batch.reason or code)))


def _note_starts(
    access: Access, ended: Iterable[Pilot], states: Mapping[str, BatchPilot], now: datetime
) -> None:
    """Count pilots that end before they call in as failed starts: the queue backs off."""
    unheard = [pilot for pilot in ended if pilot.state in PENDING and not pilot.is_remote]
    if access.queue.element == FACTORY:
        # What a factory takes back tells nothing of the nodes.
        taken_back = BatchState.CANCELLED
        unheard = [each for each in unheard if states[each.native_id].state != taken_back]
    if unheard:
        what = _words(states[unheard[0].native_id])
        count = counted(len(unheard), "pilot", "pilots")
        reason = f"{count} ended without having called in: {what}"
        note_failure(
            access.queue,
            Kind.START,
            reason,
            now=now,
            jitter=random.uniform(-1, 1),
            credential_id=access.credential_id,
        )


def _remove_stuck(
    queue: Queue, pilots: Iterable[Pilot], states: Mapping[str, BatchPilot], now: datetime
) -> int:
    """Cancel pilots that are held, or have waited or been silent for too long."""
    stuck: dict[str, list[int]] = defaultdict(list)
    for pilot in pilots:
        if reason := _stuck(queue, pilot, states[pilot.native_id], now):
            stuck[reason].append(pilot.pk)
    return sum(cancel_pending(queue, ids, reason=reason, now=now) for reason, ids in stuck.items())


def _stuck(queue: Queue, pilot: Pilot, batch: BatchPilot, now: datetime) -> str:
    """Reason to cancel a pilot that has not called in, or an empty string."""
    if pilot.state not in PENDING:
        return ""
    since_s = (now - (pilot.batch_since or now)).total_seconds()
    age_s = (now - pilot.created_at).total_seconds()
    if batch.state == BatchState.HELD:
        action = held_decision(
            hold_code=0, hold_subcode=0, num_system_holds=pilot.holds, held_seconds=since_s
        )
        return (
            f"held by the batch system: {batch.reason or 'no reason'}" if action != "keep" else ""
        )
    if batch.state == BatchState.QUEUED:
        limit_s = queue.queued_lifetime_s
        action = stale_decision(state="idle", age=age_s, configured_age=limit_s)
        return f"waited in the batch system for more than {limit_s} s" if action == "remove" else ""
    action = queue_self_removal(
        state="running", since_status=since_s, max_walltime=queue.wall_time_s
    )
    is_silent = batch.state == BatchState.RUNNING and action == "remove"
    return "runs without ever having called in" if is_silent else ""


def forget_ended(access: Access, now: datetime) -> int:
    """Let the batch system clean up after pilots that ended some time ago; return how many."""
    ended = access.pilots.filter(is_forgotten=False, ended_at__lt=now - LOG_KEPT)
    rows = ended.exclude(native_id="").order_by("pk")
    pilots = dict(rows.values_list("pk", "native_id")[:_FORGOTTEN_AT_ONCE])
    if not pilots:
        return 0
    with faults_contained("pilot_cleanup_failed", access.queue):
        access.element().forget(list(pilots.values()))
        return Pilot.objects.filter(pk__in=pilots).update(is_forgotten=True)
    return 0

"""Removal of waiting pilots from a batch system when nobody needs them; never of running ones.

Also the cancelling of pilots that have not called in, for whatever reason the caller has.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

from django.db import transaction

from matching.pressure.removal import (
    Cleanup,
    Counts,
    Observed,
    Removable,
    Removal,
    RemovalConfig,
    factory_cleanup,
    removal_decision,
)
from wms.core.actors import Actor
from wms.elements.protocol import BatchState
from wms.pilots import lifecycle
from wms.pilots.credentials.choice import element_with
from wms.pilots.models import Pilot
from wms.pilots.monitoring.fault_isolation import faults_contained
from wms.pilots.pressure.identities import unneeded_pilots
from wms.pilots.pressure_models import PressureRequest
from wms.pilots.states import PilotState, PilotTest
from wms.sites.models import Queue

_ACTOR = Actor.system("director")
#: Length of one turn without demand; pilots are removed at most once in such a time.
_TURN = timedelta(seconds=60)
#: Further turns without demand, beyond those that removal waits for.
_MOST_TURNS = 60
_UNNEEDED = "taken back: its owner has had no job that waits for it for some time"
_EXPIRED = "taken back: the request for it was not renewed since {since:%Y-%m-%d %H:%M} UTC"
_REASON = "taken back: no job has waited for it since {since:%Y-%m-%d %H:%M} UTC"


def removal_due(request: PressureRequest, queue: Queue, now: datetime) -> bool:
    """Whether the demand has been gone for long enough, and the last removal is not too recent."""
    if request.demand_gone_at is None or request.granted:
        return False
    if request.removed_at is not None and now - request.removed_at < _TURN:
        return False
    wait = timedelta(seconds=queue.removal_wait_s)
    return now - request.demand_gone_at > wait


def remove_surplus(request: PressureRequest, counts: Counts, now: datetime) -> int:
    """Cancel as many of a frontend's waiting pilots as margin and rate allow; return how many."""
    cleanup = _decided(request, counts, now)
    if cleanup.target != "queued":
        return 0
    since = request.demand_gone_at or now
    return cancel_pending(
        request.queue,
        _youngest(request, cleanup.removed_this_cycle),
        reason=_REASON.format(since=since),
        now=now,
    )


def remove_expired(request: PressureRequest, now: datetime) -> int:
    """Cancel pilots that wait for a request that nobody renews any more; return how many.

    That its lease has ended must have been found some time ago: when all was down meanwhile, the
    director renews it first.
    """
    if request.expired_at is None or now - request.expired_at < _TURN:
        return 0
    if request.removed_at is not None and now - request.removed_at < _TURN:
        return 0
    reason = _EXPIRED.format(since=request.updated_at)
    pilots = _youngest(request, request.queue.max_removals)
    return cancel_pending(request.queue, pilots, reason=reason, now=now)


def remove_unneeded(request: PressureRequest, now: datetime) -> int:
    """Cancel pilots that wait for owners who have needed none for long; return how many."""
    if request.removed_at is not None and now - request.removed_at < _TURN:
        return 0
    pilots = unneeded_pilots(request, now)
    return cancel_pending(request.queue, pilots, reason=_UNNEEDED, now=now) if pilots else 0


def _decided(request: PressureRequest, counts: Counts, now: datetime) -> Cleanup:
    queue = request.queue
    gone = now - (request.demand_gone_at or now)
    wait = queue.removal_wait_s // int(_TURN.total_seconds())
    # More turns than these decide nothing else, however long a margin has been left alone.
    turns = min(gone // _TURN, wait + _MOST_TURNS) + 1
    seen = Observed(idle_jobs=0, slots_total=counts.running, slots_idle=0, repeat=turns)
    config = RemovalConfig(Removal.IDLE.name, wait=wait)
    kind, _ = removal_decision([seen], config).last
    # Whatever was decided of running pilots: nobody takes them back but a person.
    kind = min(Removal[kind], Removal.IDLE).name
    return factory_cleanup(
        remove_excess=kind,
        frontend_min_idle=request.granted,
        max_glideins=request.ceiling,
        mine=Removable(queued=counts.idle),
        class_=counts,
        margin=queue.removal_margin,
        max_removes=queue.max_removals,
    )


def _youngest(request: PressureRequest, count: int) -> list[int]:
    # What a person has asked for is no surplus.
    waiting = Pilot.objects.filter(
        queue=request.queue_id,
        frontend=request.frontend_id,
        state=PilotState.QUEUED,
        test=PilotTest.NONE,
    )
    return list(
        waiting.exclude(batch_state=BatchState.RUNNING)
        .order_by("-pk")
        .values_list("pk", flat=True)[:count]
    )


def cancel_pending(queue: Queue, pilot_ids: list[int], *, reason: str, now: datetime) -> int:
    """Cancel pilots that have not called in; return how many were.

    First they are marked, so that one which starts at this moment is not registered any more; one
    that has called in meanwhile is left alone. A batch system that does not hear it is asked again
    when it reports that such a pilot is still there. Each is cancelled with the credential that it
    was submitted with.
    """
    withdrawn = _mark(pilot_ids, reason, now)
    submitted = Pilot.objects.filter(pk__in=withdrawn).exclude(native_id="")
    native_ids: dict[int | None, list[str]] = defaultdict(list)
    for credential_id, native_id in submitted.values_list("credential_id", "native_id"):
        native_ids[credential_id].append(native_id)
    for shown, ids in native_ids.items():
        with faults_contained("pilot_cancel_failed", queue):
            element_with(queue, shown).cancel(ids)
    return len(withdrawn)


@transaction.atomic
def _mark(pilot_ids: list[int], reason: str, now: datetime) -> list[int]:
    locked = Pilot.objects.select_for_update().filter(pk__in=pilot_ids, state=PilotState.QUEUED)
    waiting = list(locked.order_by("pk").values_list("pk", flat=True))
    applied = lifecycle.apply("remove", waiting, actor=_ACTOR, reason=reason, ended_at=now)
    return list(applied.changed)

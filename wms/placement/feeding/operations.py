"""Runs of the feeder as rows: when one is due, its lease, its end.

A run begins when the queue is low and the feeder is armed. Its begin disarms it; it is armed again
when the queue was seen at its level. Where that does not come about, because the program failed or
submitted too little, the next run begins after a pause. The queue is counted under the lock of the
feeder's row before anything changes, so that a crossing that was seen late counts once.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from django.db import transaction
from django.db.models import F, Q, QuerySet

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.permanent_errors import storable
from wms.placement.conf import FeederConf
from wms.placement.feeding.models import THE_ONE, Feeder
from wms.placement.models import PlacementRequest
from wms.placement.operations import LEASE, LOST_CODE
from wms.placement.states import ALIVE

log = structlog.get_logger(__name__)
#: What the trail of actions calls it.
TARGET: Final = "feeder of placements"
_ACTOR = Actor.system("placement")


@dataclass(frozen=True, slots=True)
class FeederRun:
    """A run that has begun, its lease, and how many requests waited or ran then."""

    lease: str
    active: int


@dataclass(frozen=True, slots=True)
class FeederEnd:
    """End of a run; `failure` is why it was not started or was stopped."""

    exit_code: int
    failure: str = ""
    output: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the program did what it was to do."""
        return self.exit_code == 0 and not self.failure


def count_active(most: int) -> int:
    """Number of everybody's requests that wait or run, counted up to `most`. One query."""
    alive = PlacementRequest.objects.filter(state__in=sorted(ALIVE))
    # In the order of the index: in any order, all that ended might be read until enough are found.
    return alive.order_by("state", "pk")[:most].count()


def look(conf: FeederConf, now: datetime) -> bool:
    """Whether a run is to begin now.

    Arms the feeder where the queue has its level, and ends a run that was lost with its worker.
    """
    feeder = Feeder.objects.filter(pk=THE_ONE).first() or Feeder()
    if feeder.lease_until is not None and feeder.lease_until < now:
        _end_lost(conf, now)
        feeder.refresh_from_db()
    if count_active(conf.below) >= conf.below:
        if not feeder.is_armed:
            _arm(conf)
        return False
    return not feeder.lease and _may_begin(feeder, now)


def _may_begin(feeder: Feeder, now: datetime) -> bool:
    return feeder.is_armed or (feeder.not_before is not None and feeder.not_before <= now)


@transaction.atomic
def _arm(conf: FeederConf) -> None:
    _locked(Feeder.objects.filter(is_armed=False))
    if count_active(conf.below) >= conf.below:
        Feeder.objects.filter(is_armed=False).update(is_armed=True)


def _locked(feeders: QuerySet[Feeder]) -> Feeder | None:
    return feeders.select_for_update().first()


@transaction.atomic
def begin_run(conf: FeederConf, now: datetime) -> FeederRun | None:
    """Begin a run, under a lease; None when none is due or another worker was first."""
    Feeder.objects.get_or_create(pk=THE_ONE)
    free = Feeder.objects.filter(Q(is_armed=True) | Q(not_before__lte=now), lease="")
    if _locked(free) is None:
        return None
    active = count_active(conf.below)
    if active >= conf.below:
        return None
    run = FeederRun(secrets.token_hex(16), active)
    free.update(
        is_armed=False,
        not_before=None,
        lease=run.lease,
        lease_until=now + LEASE,
        runs=F("runs") + 1,
        active=active,
        started_at=now,
        ended_at=None,
        exit_code=None,
        failure="",
        output="",
    )
    return run


def renew_lease(lease: str, *, now: datetime) -> bool:
    """Renew the lease; False when the run was ended by others and has to stop."""
    return bool(Feeder.objects.filter(lease=lease).update(lease_until=now + LEASE))


@transaction.atomic
def end_run(lease: str, end: FeederEnd, conf: FeederConf, now: datetime) -> bool:
    """Write the end of a run; False when others have."""
    feeder = _locked(Feeder.objects.filter(lease=lease))
    if feeder is None:
        return False
    _end(feeder, end, conf, now)
    return True


@transaction.atomic
def _end_lost(conf: FeederConf, now: datetime) -> None:
    feeder = _locked(Feeder.objects.filter(lease_until__lt=now))
    if feeder is not None:
        _end(feeder, FeederEnd(LOST_CODE, "the worker that ran it was lost"), conf, now)


def _end(feeder: Feeder, end: FeederEnd, conf: FeederConf, now: datetime) -> None:
    """Write the end, and arm the feeder where the queue has its level; the row is locked."""
    _record(feeder, end)
    is_full = count_active(conf.below) >= conf.below
    Feeder.objects.filter(pk=feeder.pk).update(
        is_armed=feeder.is_armed or is_full,
        not_before=now + conf.pause,
        lease="",
        lease_until=None,
        ended_at=now,
        failures=0 if end.is_success else feeder.failures + 1,
        exit_code=end.exit_code,
        failure=storable(end.failure),
        output=storable(end.output),
    )


def _record(feeder: Feeder, end: FeederEnd) -> None:
    """Log the end, and put into the trail when runs begin to fail, and when one succeeds again.

    Not each end: the trail is kept for ever, and a program with nothing to submit ends often.
    """
    facts = {"exit_code": end.exit_code, "active": feeder.active, "run": feeder.runs}
    log.info("placement_feeder_ended", **facts, failure=end.failure)
    if end.is_success == (feeder.failures == 0):
        return
    action = "feeder succeeds again" if end.is_success else "feeder fails"
    record_action(action, target=TARGET, actor=_ACTOR, reason=storable(end.failure), facts=facts)

"""Answers to remote frontends that call this factory: its report, and orders taken.

A turn are two calls: the frontend asks for the report, and brings the orders that follow from it. A
report counts as told when the orders came; until then the next one tells the same again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID, uuid4

import structlog
from django.db import transaction

from wms.core.errors import Conflict
from wms.core.loops import ask_loop, wake
from wms.factories.messages import NewBatch, NewPilot, Orders, Report
from wms.factories.orders import order_keys
from wms.factories.sealing import BrokenSeal, key_of, seal, unseal
from wms.pilots.factories.accepting import accept_orders
from wms.pilots.factories.callers import admit_caller, authenticate_caller
from wms.pilots.factories.reports import report_to
from wms.pilots.factories.turns import CALL_TASK
from wms.pilots.factory_models import RemoteFrontend
from wms.pilots.pressure.director import DIRECT_TASK

log = structlog.get_logger(__name__)


def tell_caller(name: str, token: str, instance: UUID, now: datetime) -> tuple[UUID, Report]:
    """The report for a frontend that asks for it, and the turn that begins with it.

    Raises NotAuthenticated, NotPermitted where it is switched off, and Conflict where another
    installation has its token.
    """
    remote = authenticate_caller(name, token, now=now)
    admit_caller(remote, instance, now)
    report, told = report_to(remote, now)
    turn = uuid4()
    RemoteFrontend.objects.filter(pk=remote.pk).update(turn=turn, turn_at=now, turn_told=told)
    return turn, report


def take_orders(name: str, token: str, turn: UUID, orders: Orders, now: datetime) -> int:
    """Store the orders that a frontend brings; return how many pilots were ordered anew.

    The lease counts from the report on: whatever happened on the way, it is no longer than the
    frontend thinks. Raises NotAuthenticated, NotPermitted, and Conflict for orders that follow from
    another report than the last one.
    """
    remote = authenticate_caller(name, token, now=now)
    key = key_of(remote.token_sha256, purpose="pilots")
    kept = replace(orders, batches=[_resealed(batch, key) for batch in orders.batches])
    with transaction.atomic():
        row = RemoteFrontend.objects.select_for_update().get(pk=remote.pk)
        if row.turn != turn or row.turn_at is None:
            raise Conflict("These orders follow from an earlier report: ask for a new one.")
        told = {int(pk): str(state) for pk, state in row.turn_told.items()}
        new = accept_orders(remote, kept, told, called_at=row.turn_at)
        RemoteFrontend.objects.filter(pk=remote.pk).update(turn=None, turn_told={})
    if orders.cancelled:
        wake(CALL_TASK, remote.pk)
    if new:
        log.info("remote_orders_accepted", remote=remote.pk, count=new)
        ask_loop(DIRECT_TASK)
    return new


def _resealed(batch: NewBatch, key: bytes) -> NewBatch:
    """The batch with its secrets under our own key.

    Where a frontend calls, the database has the key under which they came; it must not have the
    secrets too. One that cannot be opened stays as it is, and is returned when its turn comes.
    """
    own = order_keys()[0]
    pilots: Sequence[NewPilot] = [_resealed_pilot(pilot, key, own) for pilot in batch.pilots]
    return replace(batch, pilots=pilots)


def _resealed_pilot(pilot: NewPilot, key: bytes, own: bytes) -> NewPilot:
    try:
        return replace(pilot, sealed=seal(own, unseal([key], pilot.sealed)))
    except BrokenSeal:
        return pilot

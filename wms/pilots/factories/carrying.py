"""Carrying out of a remote frontend's orders: pilots submitted, taken back, returned at expiry.

The rows of pilots are written before the batch system is asked, as for any other pilot, and in the
transaction that ends the waiting of their orders: a crash leaves a batch to be asked for, and no
order is submitted twice.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog
from django.db import transaction
from django.db.models import Q

from wms.core.actors import Actor
from wms.core.database.locks import advisory_lock
from wms.elements.protocol import BatchState, Element
from wms.factories.orders import order_keys
from wms.factories.sealing import BrokenSeal, key_of, unseal
from wms.factories.tokens import digest
from wms.pilots import lifecycle
from wms.pilots.credentials.choice import element_with
from wms.pilots.factories.calls import token_of
from wms.pilots.factory_models import RemoteBatch, RemoteFrontend, RemoteOrder
from wms.pilots.models import Pilot
from wms.pilots.monitoring.fault_isolation import faults_contained, queue_lock
from wms.pilots.protocol.registration import secret_digest
from wms.pilots.states import ALIVE, PENDING
from wms.sites.models import Queue

log = structlog.get_logger(__name__)
_ACTOR = Actor.system("factory")
_NOT_RENEWED = "the request is over: its frontend has not renewed it since {since:%H:%M:%S} UTC"
_SWITCHED_OFF = "the factory has switched this frontend off"
_TAKEN_BACK = "taken back by its frontend"
_UNREADABLE = "its secret cannot be opened: the token or the portal's key is another one now"


def take_waiting(
    remote: RemoteFrontend, queue: Queue, count: int, batch: str, credential_id: int | None = None
) -> tuple[RemoteBatch | None, list[Pilot], list[str]]:
    """Make pilots of the orders that wait longest, so many at most and of one batch of theirs.

    Their rows carry the name `batch` and the credential. Returns the remote batch, its pilots and
    their secrets.
    Raises CallFailed where the token that opens the secrets is missing.
    """
    keys = _keys_for(remote)
    with transaction.atomic():
        orders = _locked_orders(remote, queue, count)
        opened: list[tuple[RemoteOrder, str]] = []
        for order in orders:
            try:
                opened.append((order, unseal(keys, order.sealed)))
            except BrokenSeal:
                _return([order.pk], _UNREADABLE, is_failed=True)
        pilots = Pilot.objects.bulk_create(
            [
                Pilot(
                    queue=queue,
                    batch=batch,
                    frontend_id=remote.frontend_id,
                    credential_id=credential_id,
                    is_remote=True,
                    # It registers elsewhere: nobody knows a secret for here.
                    secret_sha256=secret_digest(secrets.token_urlsafe(32)),
                )
                for _ in opened
            ]
        )
        for (order, _), pilot in zip(opened, pilots, strict=True):
            order.pilot, order.state, order.sealed = pilot, RemoteOrder.State.SUBMITTED, ""
        taken = [order for order, _ in opened]
        RemoteOrder.objects.bulk_update(taken, ["pilot", "state", "sealed"])
    return (orders[0].batch if orders else None), pilots, [secret for _, secret in opened]


def _keys_for(remote: RemoteFrontend) -> list[bytes]:
    """Keys under which the secrets of a frontend's pilots are kept: our own, or its token's."""
    if remote.is_caller:
        return order_keys()
    return [key_of(digest(token_of(remote)), purpose="pilots")]


def _locked_orders(remote: RemoteFrontend, queue: Queue, count: int) -> list[RemoteOrder]:
    waiting = RemoteOrder.objects.filter(
        remote=remote, queue=queue, state=RemoteOrder.State.WAITING, is_cancelled=False
    ).order_by("pk")
    first = waiting.values_list("batch_id", flat=True).first()
    rows = waiting.filter(batch=first).select_related("batch")
    return list(rows.select_for_update(of=("self",))[:count])


def _return(order_ids: Sequence[int], reason: str, *, is_failed: bool = False) -> int:
    waiting = RemoteOrder.objects.filter(pk__in=order_ids, state=RemoteOrder.State.WAITING)
    return waiting.update(
        state=RemoteOrder.State.RETURNED, reason=reason, is_failed=is_failed, sealed=""
    )


def over_since(remote: RemoteFrontend, now: datetime) -> str:
    """Why the orders of a frontend are not followed any more; empty while they are."""
    if not (remote.is_enabled and remote.frontend.is_enabled):
        return _SWITCHED_OFF
    if remote.lease_until is not None and remote.lease_until <= now:
        return _NOT_RENEWED.format(since=remote.lease_until)
    return ""


def return_expired(remote: RemoteFrontend, now: datetime) -> int:
    """Take back all that waits of a frontend whose request is over; what runs goes on.

    Returns how many orders were returned, or pilots taken back.
    """
    reason = over_since(remote, now)
    if not reason:
        return 0
    waiting = RemoteOrder.objects.filter(remote=remote, state=RemoteOrder.State.WAITING)
    returned = _return(list(waiting.values_list("pk", flat=True)), reason)
    submitted = _pilots_of(remote, Q(state__in=PENDING))
    removed = sum(
        _take_back(queue, pilots, reason, now, only_waiting=True)
        for queue, pilots in submitted.items()
    )
    if returned or removed:
        log.info("remote_request_over", remote=remote.pk, returned=returned, removed=removed)
    return returned + removed


def carry_out_cancels(remote: RemoteFrontend, now: datetime) -> int:
    """Take back the pilots that their frontend does not want any more, waiting or running."""
    cancelled = RemoteOrder.objects.filter(remote=remote, is_cancelled=True, is_settled=False)
    waiting = cancelled.filter(state=RemoteOrder.State.WAITING)
    returned = _return(list(waiting.values_list("pk", flat=True)), _TAKEN_BACK)
    submitted = _pilots_of(remote, Q(state__in=ALIVE, order__is_cancelled=True))
    return returned + sum(
        _take_back(queue, pilots, _TAKEN_BACK, now, only_waiting=False)
        for queue, pilots in submitted.items()
    )


def _pilots_of(remote: RemoteFrontend, condition: Q) -> Mapping[Queue, Sequence[Pilot]]:
    pilots: dict[Queue, list[Pilot]] = defaultdict(list)
    rows = Pilot.objects.select_related("queue__site").filter(condition, order__remote=remote)
    for pilot in rows.defer("node", "load").order_by("pk"):
        pilots[pilot.queue].append(pilot)
    return pilots


def _take_back(
    queue: Queue, pilots: Sequence[Pilot], reason: str, now: datetime, *, only_waiting: bool
) -> int:
    """Remove pilots from a batch system; later, if somebody else talks to it at this moment.

    With `only_waiting` it is asked first, so that none that has begun is among them.
    """
    with advisory_lock(queue_lock(queue.pk)) as is_held:
        if not is_held:
            return 0
        shown: dict[int | None, list[Pilot]] = defaultdict(list)
        for pilot in pilots:
            shown[pilot.credential_id].append(pilot)
        count = 0
        for credential_id, own in shown.items():
            with faults_contained("pilot_cancel_failed", queue):
                element = element_with(queue, credential_id)
                chosen = _still_waiting(element, own) if only_waiting else own
                count += _remove(element, chosen, reason, now)
    return count


def _remove(element: Element, pilots: Sequence[Pilot], reason: str, now: datetime) -> int:
    ids = [pilot.pk for pilot in pilots]
    applied = lifecycle.apply("remove", ids, actor=_ACTOR, reason=reason, ended_at=now)
    removed = set(applied.changed)
    native_ids = [each.native_id for each in pilots if each.pk in removed and each.native_id]
    if native_ids:
        element.cancel(native_ids)
    return len(removed)


def _still_waiting(element: Element, pilots: Sequence[Pilot]) -> list[Pilot]:
    """Pilots that the batch system has not begun, by what it says now."""
    known = [pilot for pilot in pilots if pilot.native_id]
    if not known:
        return []
    states = element.status([pilot.native_id for pilot in known])
    waits = {BatchState.QUEUED, BatchState.HELD}
    return [pilot for pilot in known if states[pilot.native_id].state in waits]

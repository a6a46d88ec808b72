"""Acceptance of a remote frontend's orders: stored once each, or returned with a reason.

What is to be taken back is marked here, and carried out by `carrying`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from wms.factories.messages import NewBatch, NewPilot, Orders
from wms.pilots.factories.reports import entries_of, note_told
from wms.pilots.factory_models import RemoteBatch, RemoteFrontend, RemoteOrder
from wms.sites.models import Queue

#: Orders of one frontend that are not settled, at most; it offers the others again.
MOST_ORDERS = 20_000
#: Settled orders are remembered so long: a frontend that was restored may ask for them.
_KEPT = timedelta(days=2)
_FORGOTTEN_AT_ONCE = 1000
_ENDING_S = 60


@transaction.atomic
def accept_orders(
    remote: RemoteFrontend, orders: Orders, told: Mapping[int, str], *, called_at: datetime
) -> int:
    """Store what a frontend made of a report, and that it has the states that this one told.

    Returns how many pilots were ordered anew. The lease counts from the report on, by our clock.
    """
    row = RemoteFrontend.objects.select_for_update().get(pk=remote.pk)
    note_told(told)
    row.answered_at = called_at
    row.lease_until = called_at + timedelta(seconds=orders.lease_s)
    row.failures, row.next_at, row.error = 0, None, ""
    row.refused = dict(orders.refused)
    row.save(
        update_fields=["answered_at", "lease_until", "failures", "next_at", "error", "refused"]
    )
    queues = {str(entry.queue): entry.queue for entry in entries_of(remote)}
    left = MOST_ORDERS - RemoteOrder.objects.filter(remote=remote, is_settled=False).count()
    new = 0
    for batch in orders.batches:
        new += _accept(remote, batch, queues.get(batch.entry), max(left - new, 0))
    _mark_cancelled(remote, orders.cancelled)
    _tell_again(remote, orders.asked)
    _forget(remote, called_at)
    return new


def _accept(remote: RemoteFrontend, batch: NewBatch, queue: Queue | None, most: int) -> int:
    """Store the pilots of a batch that are not known yet; return how many may be submitted."""
    pilots = {pilot.uuid: pilot for pilot in batch.pilots}
    known = RemoteOrder.objects.filter(remote=remote, uuid__in=pilots)
    repeated = set(known.values_list("uuid", flat=True))
    # It has not heard of those that it sends again.
    known.update(told="", is_settled=False)
    new = [pilot for uuid, pilot in pilots.items() if uuid not in repeated][:most]
    if not new:
        return 0
    refusal = _refusal(batch, queue)
    stored, _ = RemoteBatch.objects.get_or_create(
        remote=remote,
        name=batch.name,
        defaults={
            "script": batch.script,
            "cores": batch.cores,
            "memory_mb": batch.memory_mb,
            "gpus": batch.gpus,
            "minutes": batch.minutes,
        },
    )
    rows = [_order(remote, stored, queue, pilot, refusal) for pilot in new]
    RemoteOrder.objects.bulk_create(rows, batch_size=1000)
    return sum(row.state == RemoteOrder.State.WAITING for row in rows)


def _order(
    remote: RemoteFrontend,
    batch: RemoteBatch,
    queue: Queue | None,
    pilot: NewPilot,
    refusal: str,
) -> RemoteOrder:
    state = RemoteOrder.State.RETURNED if refusal else RemoteOrder.State.WAITING
    return RemoteOrder(
        remote=remote,
        batch=batch,
        queue=queue,
        uuid=pilot.uuid,
        sealed="" if refusal else pilot.sealed,
        state=state,
        is_failed=bool(refusal),
        reason=refusal,
    )


def _refusal(batch: NewBatch, queue: Queue | None) -> str:
    """Why the pilots of a batch are not submitted; empty where they may be."""
    if queue is None:
        return f"the factory has no entry {batch.entry} for this frontend"
    longest = (queue.wall_time_s + _ENDING_S) // 60 + 1
    for what, asked, there in (
        ("cores", batch.cores, queue.cores),
        ("MB of memory", batch.memory_mb, queue.memory_mb),
        ("GPUs", batch.gpus, queue.gpus),
        ("minutes", batch.minutes, longest),
    ):
        if asked > there:
            return f"asks for {asked} {what}; pilots of {queue} have {there} at most"
    return ""


def _mark_cancelled(remote: RemoteFrontend, uuids: Sequence[UUID]) -> None:
    RemoteOrder.objects.filter(remote=remote, uuid__in=uuids).update(is_cancelled=True)
    _return_unknown(remote, uuids, "taken back by the frontend")


def _tell_again(remote: RemoteFrontend, uuids: Sequence[UUID]) -> None:
    RemoteOrder.objects.filter(remote=remote, uuid__in=uuids).update(told="", is_settled=False)
    _return_unknown(remote, uuids, "the factory does not know this order")


def _return_unknown(remote: RemoteFrontend, uuids: Sequence[UUID], reason: str) -> None:
    """Store orders that are not known here as returned, so that the frontend is told."""
    known = set(
        RemoteOrder.objects.filter(remote=remote, uuid__in=uuids).values_list("uuid", flat=True)
    )
    RemoteOrder.objects.bulk_create(
        [
            RemoteOrder(remote=remote, uuid=uuid, state=RemoteOrder.State.RETURNED, reason=reason)
            for uuid in dict.fromkeys(uuids)
            if uuid not in known
        ],
        batch_size=1000,
    )


def _forget(remote: RemoteFrontend, now: datetime) -> None:
    old = RemoteOrder.objects.filter(remote=remote, is_settled=True, created_at__lt=now - _KEPT)
    ended = list(old.order_by("created_at").values_list("pk", "batch_id")[:_FORGOTTEN_AT_ONCE])
    if ended:
        RemoteOrder.objects.filter(pk__in=[pk for pk, _ in ended]).delete()
        batches = {batch_id for _, batch_id in ended if batch_id}
        RemoteBatch.objects.filter(pk__in=batches, orders=None).delete()

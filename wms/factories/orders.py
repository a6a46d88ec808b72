"""Orders of pilots: placed in batches, cancelled, forgotten; what a factory has told of them.

What an order is about travels with the next exchange; nothing here waits for that. The secrets
of pilots are kept sealed, until the factory has confirmed their orders.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q

from wms.core.conf import conf
from wms.core.key_rotation import Renewal
from wms.core.keyed_digests import secret_keys
from wms.factories.messages import MOST_SCRIPT_BYTES
from wms.factories.models import FactoryEntry, OrderBatch, PilotOrder, RemoteFactory
from wms.factories.sealing import BrokenSeal, key_of, seal, unseal
from wms.factories.standing import standings
from wms.factories.states import ENDED, OrderState

#: Orders of one factory that have not ended, at most: what a call looks through.
MOST_OPEN = 20_000
NOT_FETCHED = "the order did not reach the factory in time"
TAKEN_BACK = "taken back before it reached the factory"


class OrderRefused(Exception):
    """The factory takes no such order; the text says why."""


class FactorySilent(Exception):
    """Nothing is known of the factory's pilots now; the text says since when."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Slot that an ordered pilot asks its batch system for."""

    cores: int
    memory_mb: int
    gpus: int
    minutes: int


class SealedOrder(Protocol):
    """Row with the secret of a pilot."""

    sealed: str


def order_keys() -> list[bytes]:
    """Keys under which secrets of pilots are kept between order and delivery; the first seals."""
    return [key_of(secret, purpose="orders") for secret in secret_keys()]


def renew_sealed(orders: Sequence[SealedOrder]) -> Renewal:
    """Seal what is sealed with a former key anew with the first one.

    What none of them opens came under another key, or is lost: who opens it tells.
    """
    keys, changed = order_keys(), []
    for order in orders:
        try:
            unseal(keys[:1], order.sealed)
        except BrokenSeal:
            with suppress(BrokenSeal):
                order.sealed = seal(keys[0], unseal(keys, order.sealed))
                changed.append(order)
    return Renewal(changed)


def order_pilots(
    factory: str,
    entry: str,
    secrets: Sequence[str],
    *,
    name: str,
    script: str,
    slot: Slot,
    now: datetime,
) -> list[str]:
    """Order the pilots of these secrets (`UUID:SECRET`) as the batch `name`; return their ids.

    All of them or none, and the same batch never twice. Raises OrderRefused or FactorySilent.
    """
    known = standings([factory], now)
    if silent := known.silence(factory):
        raise FactorySilent(silent)
    row = known.factories[factory]
    if len(script) > MOST_SCRIPT_BYTES:
        raise OrderRefused(f"its script has more than {MOST_SCRIPT_BYTES} bytes")
    _check_room(row, len(secrets))
    uuids = [UUID(secret.partition(":")[0]) for secret in secrets]
    key = order_keys()[0]
    try:
        with transaction.atomic():
            batch = OrderBatch.objects.create(
                name=name,
                factory=row,
                entry=entry,
                script=script,
                cores=slot.cores,
                memory_mb=slot.memory_mb,
                gpus=slot.gpus,
                minutes=slot.minutes,
                created_at=now,
            )
            PilotOrder.objects.bulk_create(
                [
                    PilotOrder(batch=batch, index=index, uuid=uuid, sealed=seal(key, secret))
                    for index, (uuid, secret) in enumerate(zip(uuids, secrets, strict=True))
                ]
            )
    except IntegrityError as error:
        raise OrderRefused(f"there is a batch {name} already, or an order of its pilots") from error
    return [str(uuid) for uuid in uuids]


def _check_room(factory: RemoteFactory, count: int) -> None:
    there = PilotOrder.objects.filter(batch__factory=factory).exclude(state__in=ENDED).count()
    if there + count > MOST_OPEN:
        raise OrderRefused(f"{there} pilots are ordered of the factory; {MOST_OPEN} may be")


def ordered_ids(name: str) -> list[str]:
    """Ids of the pilots of a batch, in the order of submission; none if it was never ordered."""
    orders = PilotOrder.objects.filter(batch__name=name).order_by("index")
    return [str(uuid) for uuid in orders.values_list("uuid", flat=True)]


@dataclass(frozen=True, slots=True)
class ToldState:
    """Latest report of a factory on one pilot; node and exit code as its batch system does."""

    state: OrderState
    reason: str
    node: str = ""
    exit_code: int | None = None


def told_states(factory: str, ids: Collection[str], now: datetime) -> dict[str, ToldState]:
    """Reports of the factory on these pilots; those that it never heard of are left out.

    Raises FactorySilent while it is not heard: what it told last may be wrong by now.
    """
    if silent := standings([factory], now).silence(factory):
        raise FactorySilent(silent)
    expire_unsent(factory, now)
    orders = PilotOrder.objects.filter(uuid__in=ids, batch__factory__name=factory)
    orders = orders.defer("sealed", "log")
    return {str(order.uuid): _told(order) for order in orders}


def _told(order: PilotOrder) -> ToldState:
    state = OrderState(order.state)
    if state == OrderState.NEW:
        return ToldState(OrderState.QUEUED, "waits for the next exchange with the factory")
    return ToldState(state, order.reason, order.node, order.exit_code)


def told_log(factory: str, pilot_id: str) -> str:
    """End of the log of a pilot at the factory's batch system; empty where none was told."""
    orders = PilotOrder.objects.filter(uuid=pilot_id, batch__factory__name=factory)
    return orders.values_list("log", flat=True).first() or ""


def expire_unsent(factory: str, now: datetime) -> int:
    """Cancel orders that the factory has not fetched within a lease; return how many."""
    limit = now - timedelta(seconds=conf().factory_lease_s)
    unsent = PilotOrder.objects.filter(
        batch__factory__name=factory, batch__created_at__lt=limit, sent_at=None, state=""
    )
    return unsent.update(state=OrderState.CANCELLED, reason=NOT_FETCHED, sealed="", told_at=now)


@transaction.atomic
def cancel_orders(factory: str, ids: Collection[str], now: datetime) -> None:
    """Take orders back: those that were sent by the factory's next call, others at once."""
    orders = PilotOrder.objects.filter(uuid__in=ids, batch__factory__name=factory)
    locked = orders.exclude(state__in=ENDED).order_by("pk").select_for_update(of=("self",))
    rows = list(locked.values_list("pk", "sent_at"))
    unsent = [pk for pk, sent_at in rows if sent_at is None]
    PilotOrder.objects.filter(pk__in=unsent).update(
        state=OrderState.CANCELLED, reason=TAKEN_BACK, sealed="", told_at=now
    )
    PilotOrder.objects.filter(pk__in=[pk for pk, sent_at in rows if sent_at is not None]).update(
        is_cancelled=True
    )


@transaction.atomic
def forget_orders(factory: str, ids: Collection[str]) -> None:
    """Remove orders that have ended, and batches of which none is left."""
    ended = PilotOrder.objects.filter(
        Q(state__in=ENDED), uuid__in=ids, batch__factory__name=factory
    )
    batches = set(ended.values_list("batch_id", flat=True))
    ended.delete()
    OrderBatch.objects.filter(pk__in=batches, orders=None).delete()


def entry_counts(factory: str, entry: str, now: datetime) -> tuple[FactoryEntry, int, int]:
    """The entry as it is advertised, and its pilots of ours that wait and that run.

    Raises FactorySilent, or OrderRefused where the entry takes none.
    """
    known = standings([factory], now)
    if silent := known.silence(factory):
        raise FactorySilent(silent)
    ad = known.entries.get((factory, entry))
    if ad is None:
        raise OrderRefused(f"the factory {factory} does not advertise the entry {entry}")
    ours = PilotOrder.objects.filter(batch__factory=ad.factory, batch__entry=entry)
    running = ours.filter(state=OrderState.RUNNING).count()
    waiting = ours.filter(state__in=["", OrderState.QUEUED, OrderState.HELD]).count()
    return ad, waiting, running

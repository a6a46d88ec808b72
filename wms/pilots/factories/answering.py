"""Answers to the reports of remote factories: what they say is stored, orders are handed out.

A factory calls with its report, or is asked for it (`calling`): what follows is the same.

Repeating a call changes nothing: an order is sent until the factory has told of its pilot, and what
it tells of an ended pilot is believed once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from wms.core.conf import conf
from wms.core.loops import wake
from wms.factories.messages import (
    MOST_BATCHES,
    MOST_NEW,
    EntryAd,
    NewBatch,
    NewPilot,
    Orders,
    PilotWord,
    Report,
)
from wms.factories.models import FactoryEntry, OrderBatch, PilotOrder, RemoteFactory
from wms.factories.orders import expire_unsent, order_keys
from wms.factories.sealing import BrokenSeal, key_of, seal, unseal
from wms.factories.services import admit_factory, authenticate_factory
from wms.factories.standing import is_stale
from wms.factories.states import ENDED, OrderState
from wms.factories.tokens import digest
from wms.pilots.monitoring.batch_poller import POLL_TASK
from wms.pilots.pressure.backoff import Kind
from wms.pilots.pressure_models import ElementContact
from wms.sites.models import Queue

#: A pilot that the factory has not told of for so long is asked for.
_ASKED_AFTER = timedelta(minutes=10)
_MOST_ASKED = 200
_MOST_CANCELLED = 1000
_NOT_READABLE = "its secret cannot be read any more: the secret key of the portal was changed"


def answer_factory(name: str, token: str, report: Report, now: datetime) -> Orders:
    """Store the report of a factory that calls, and answer with what it is to do.

    Raises NotAuthenticated, NotPermitted where it is switched off, and Conflict where another
    installation has its token.
    """
    return answer_report(authenticate_factory(name, token, now=now), token, report, now)


def answer_report(factory: RemoteFactory, token: str, report: Report, now: datetime) -> Orders:
    """Store the report of a factory; return what it is to do, with secrets sealed by the token.

    Raises NotPermitted where it is switched off, and Conflict where another installation has its
    token.
    """
    was_stale = is_stale(factory, now)
    admit_factory(factory, report.instance, now)
    with transaction.atomic():
        # One call of a factory at a time: what two of them sent would arrive in either order.
        RemoteFactory.objects.select_for_update().get(pk=factory.pk)
        queues = _queues_by_entry(factory)
        refused = _store_ads(factory, report.entries, queues, now)
        unknown = _store_words(factory, report.pilots, now)
        expire_unsent(factory.name, now)
        used = [entry.name for entry in report.entries if entry.name not in refused]
        orders = Orders(
            lease_s=conf().factory_lease_s,
            refused=refused,
            batches=_new_batches(factory, used, key_of(digest(token), purpose="pilots"), now),
            cancelled=[*_cancelled(factory), *unknown[: _MOST_CANCELLED // 2]],
            asked=_asked(factory, now),
        )
        ids = [queue.pk for queue in queues.values()]
        if was_stale:
            _believe_again(ids)
    if report.pilots or was_stale:
        for queue_id in ids:
            wake(POLL_TASK, queue_id)
    return orders


def _queues_by_entry(factory: RemoteFactory) -> dict[str, Queue]:
    queues = Queue.objects.select_related("site").filter(
        element="factory", settings__factory=factory.name
    )
    return {str(queue.settings.get("entry")): queue for queue in queues.order_by("-pk")}


def _store_ads(
    factory: RemoteFactory, ads: Sequence[EntryAd], queues: Mapping[str, Queue], now: datetime
) -> dict[str, str]:
    """Store the entries that are advertised now, without those of old; return refused ones."""
    refused = _refusals(factory, ads, queues)
    rows = [
        FactoryEntry(
            factory=factory,
            name=ad.name,
            is_open=ad.is_open,
            reason="" if ad.is_open else ad.reason or "it is closed",
            facts={
                "platform": ad.platform,
                "cores": ad.cores,
                "memory_mb": ad.memory_mb,
                "gpus": ad.gpus,
                "wall_time_s": ad.wall_time_s,
                "max_pilots": ad.max_pilots,
                "waiting": ad.waiting,
                "queued": ad.queued,
                "running": ad.running,
                "failed": dict(ad.failed),
            },
            refusal=refused.get(ad.name, ""),
            seen_at=now,
        )
        for ad in {ad.name: ad for ad in ads}.values()
    ]
    FactoryEntry.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["factory", "name"],
        update_fields=["is_open", "reason", "facts", "refusal", "seen_at"],
    )
    FactoryEntry.objects.filter(factory=factory, seen_at__lt=now).delete()
    return refused


def _refusals(
    factory: RemoteFactory, ads: Sequence[EntryAd], queues: Mapping[str, Queue]
) -> dict[str, str]:
    """Entries that are not used, with the reason."""
    unnamed = [ad.name for ad in ads if ad.name not in queues]
    rivals: dict[str, Queue] = {}
    if unnamed:
        others = Queue.objects.select_related("site").filter(
            element="factory", settings__entry__in=unnamed
        )
        rivals = {str(queue.settings.get("entry")): queue for queue in others}
    refused = {}
    for ad in ads:
        queue, rival = queues.get(ad.name), rivals.get(ad.name)
        if queue is None and rival is not None:
            other = rival.settings.get("factory")
            refused[ad.name] = f"the queue {rival} has this entry of the factory {other}"
        elif queue is None:
            refused[ad.name] = "no queue here has this entry"
        elif factory.sites and queue.site.name not in factory.sites:
            refused[ad.name] = f"the factory may not serve the site {queue.site.name} of {queue}"
    return refused


def _store_words(factory: RemoteFactory, words: Sequence[PilotWord], now: datetime) -> list[UUID]:
    """Store what is told of pilots; return those that live there and were never ordered."""
    told = {word.uuid: word for word in words}
    orders = list(PilotOrder.objects.filter(uuid__in=told, batch__factory=factory).order_by("pk"))
    for order in orders:
        word = told[order.uuid]
        if order.state in ENDED:
            continue
        order.state, order.reason = word.state, word.reason
        order.node = word.node or order.node
        order.exit_code, order.log = word.exit_code, word.log
        order.sealed, order.told_at = "", now
    PilotOrder.objects.bulk_update(
        orders,
        ["state", "reason", "node", "exit_code", "log", "sealed", "told_at"],
        batch_size=1000,
    )
    known = {order.uuid for order in orders}
    return [
        word.uuid
        for word in words
        if word.uuid not in known and word.state not in {*ENDED, OrderState.MISSING}
    ]


def _new_batches(
    factory: RemoteFactory, entries: Collection[str], key: bytes, now: datetime
) -> list[NewBatch]:
    """Orders that the factory has not confirmed, the oldest first, with their secrets sealed."""
    unconfirmed = PilotOrder.objects.filter(
        batch__factory=factory, batch__entry__in=entries, state=OrderState.NEW, is_cancelled=False
    )
    orders = list(
        unconfirmed.select_related("batch")
        .order_by("pk")
        .select_for_update(of=("self",))[:MOST_NEW]
    )
    # Each batch brings its script along: what is of more of them comes with the next answers.
    taken = set(list(dict.fromkeys(order.batch_id for order in orders))[:MOST_BATCHES])
    orders = [order for order in orders if order.batch_id in taken]
    own, batches = order_keys(), {}
    pilots: dict[int, list[NewPilot]] = defaultdict(list)
    lost = []
    for order in orders:
        try:
            secret = unseal(own, order.sealed)
        except BrokenSeal:
            lost.append(order.pk)
            continue
        batches[order.batch_id] = order.batch
        pilots[order.batch_id].append(NewPilot(order.uuid, seal(key, secret)))
    PilotOrder.objects.filter(pk__in=[order.pk for order in orders]).update(sent_at=now)
    PilotOrder.objects.filter(pk__in=lost).update(
        state=OrderState.FAILED, reason=_NOT_READABLE, sealed="", told_at=now
    )
    return [_as_message(batch, pilots[pk]) for pk, batch in batches.items()]


def _as_message(batch: OrderBatch, pilots: Sequence[NewPilot]) -> NewBatch:
    return NewBatch(
        name=batch.name,
        entry=batch.entry,
        script=batch.script,
        cores=batch.cores,
        memory_mb=batch.memory_mb,
        gpus=batch.gpus,
        minutes=batch.minutes,
        pilots=pilots,
    )


def _cancelled(factory: RemoteFactory) -> list[UUID]:
    cancelled = PilotOrder.objects.filter(batch__factory=factory, is_cancelled=True)
    open_ones = cancelled.exclude(state__in=ENDED).order_by("pk")
    return list(open_ones.values_list("uuid", flat=True)[: _MOST_CANCELLED // 2])


def _asked(factory: RemoteFactory, now: datetime) -> list[UUID]:
    """Pilots of which nothing was told for long: the factory may have lost what it knew."""
    silent = PilotOrder.objects.filter(
        batch__factory=factory, told_at__lt=now - _ASKED_AFTER
    ).exclude(state__in=ENDED)
    return list(silent.order_by("told_at").values_list("uuid", flat=True)[:_MOST_ASKED])


def _believe_again(queue_ids: Sequence[int]) -> None:
    """End the pauses after questions to a factory that was not heard: it is heard again."""
    kinds = [Kind.POLL, Kind.SUBMIT]
    ElementContact.objects.filter(queue__in=queue_ids, kind__in=kinds, failures__gt=0).update(
        failures=0, failing_since=None, reason="", next_at=None
    )

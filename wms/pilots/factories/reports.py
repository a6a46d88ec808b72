"""Reports of this factory to a remote frontend: its entries here, and states of its pilots."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.db.models import Count

from wms.elements.protocol import BatchState
from wms.factories.messages import (
    MOST_ENTRIES,
    MOST_PILOTS,
    MOST_REASON,
    MOST_REPORT_BYTES,
    EntryAd,
    PilotWord,
    Report,
)
from wms.factories.states import ENDED, OrderState
from wms.pilots.credentials.choice import Choices
from wms.pilots.factory_models import RemoteFrontend, RemoteOrder
from wms.pilots.models import Pilot
from wms.pilots.pressure.backoff import Kind, back_offs, described
from wms.pilots.states import ALIVE, PENDING, PilotState
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue
from wms.sites.selectors import enabled_queues

#: Bytes of all words of one report: half of what the frontend takes. Logs and reasons are long.
_MOST_BYTES_OF_WORDS = MOST_REPORT_BYTES // 2
#: Failures of this time are told.
_LATELY = timedelta(hours=1)
_WAITS = "waits at the factory until its limits leave a place"
_ENDED_WORDS = {
    PilotState.DONE: OrderState.DONE,
    PilotState.FAILED: OrderState.FAILED,
    PilotState.ABORTED: OrderState.FAILED,
    PilotState.REMOVED: OrderState.CANCELLED,
}
_ALIVE_WORDS = {
    BatchState.RUNNING.value: OrderState.RUNNING,
    BatchState.HELD.value: OrderState.HELD,
}


@dataclass(frozen=True, slots=True)
class Told:
    """Report on an order: its row's id, and the word."""

    pk: int
    word: PilotWord


def word_of(order: RemoteOrder) -> PilotWord:
    """Report of an order to the frontend, by its pilot if it has one."""
    state, reason = _state_of(order)
    pilot = order.pilot
    return PilotWord(
        order.uuid,
        state.value,
        reason[:MOST_REASON],
        node=pilot.batch_node if pilot else "",
        exit_code=pilot.batch_exit_code if pilot else None,
        log=order.log if state in ENDED else "",
    )


def _state_of(order: RemoteOrder) -> tuple[OrderState, str]:
    if order.state == RemoteOrder.State.WAITING:
        return OrderState.QUEUED, _WAITS
    pilot = order.pilot
    if order.state == RemoteOrder.State.RETURNED or pilot is None:
        return (OrderState.FAILED if order.is_failed else OrderState.CANCELLED), order.reason
    if pilot.state in ALIVE:
        if pilot.state == PilotState.RUNNING:
            return OrderState.RUNNING, pilot.batch_reason
        return _ALIVE_WORDS.get(pilot.batch_state, OrderState.QUEUED), pilot.batch_reason
    return _ENDED_WORDS[PilotState(pilot.state)], pilot.state_reason


def report_to(remote: RemoteFrontend, now: datetime) -> tuple[Report, dict[int, str]]:
    """The report to a frontend, and the states that it tells, by the order's id."""
    told = words_to_tell(remote)
    report = Report(remote.instance, ads_of(remote, now), [each.word for each in told])
    return report, {each.pk: each.word.state for each in told}


def words_to_tell(remote: RemoteFrontend) -> list[Told]:
    """Reports that the frontend was not told yet, oldest orders first; as many as a call takes."""
    room = _MOST_BYTES_OF_WORDS
    orders = RemoteOrder.objects.filter(remote=remote, is_settled=False).select_related("pilot")
    orders = orders.defer("pilot__node", "pilot__load", "sealed").order_by("pk")
    found: list[Told] = []
    for order in orders.iterator(chunk_size=1000):
        word = word_of(order)
        if word.state != order.told:
            room -= len(json.dumps(asdict(word), default=str))
            if found and room < 0:
                break
            found.append(Told(order.pk, word))
            if len(found) == MOST_PILOTS:
                break
    return found


def note_told(told: Mapping[int, str]) -> None:
    """Note the states that the frontend was told; an order whose end it knows is settled."""
    orders = RemoteOrder.objects.in_bulk(list(told))
    for pk, order in orders.items():
        order.told = told[pk]
        order.is_settled = order.told in ENDED
    RemoteOrder.objects.bulk_update(orders.values(), ["told", "is_settled"], batch_size=1000)
    # By itself: of those that go on a poll may be keeping a log at this moment.
    settled = [pk for pk, order in orders.items() if order.is_settled]
    RemoteOrder.objects.filter(pk__in=settled).exclude(log="").update(log="")


def entries_of(remote: RemoteFrontend) -> list[FrontendEntry]:
    """Entries at which the frontend may have pilots, with their queues."""
    entries = FrontendEntry.objects.select_related("queue__site").filter(
        frontend=remote.frontend_id, share__gt=0
    )
    return list(entries.order_by("queue__site__name", "queue__name")[:MOST_ENTRIES])


def ads_of(remote: RemoteFrontend, now: datetime) -> list[EntryAd]:
    """Ads of the frontend's entries, with its pilots there. Some five queries."""
    entries = entries_of(remote)
    ids = [entry.queue_id for entry in entries]
    closed = _closed(remote, [entry.queue for entry in entries], now)
    waiting = RemoteOrder.objects.filter(
        remote=remote, state=RemoteOrder.State.WAITING, queue__in=ids
    )
    orders = dict(waiting.order_by().values_list("queue_id").annotate(Count("pk")))
    pilots = Pilot.objects.filter(queue__in=ids, frontend=remote.frontend_id).order_by()
    alive = _counts(pilots.filter(state__in=ALIVE).values_list("queue_id", "state"))
    went_wrong = [PilotState.FAILED, PilotState.ABORTED, PilotState.REMOVED]
    failed = _counts(
        pilots.filter(state__in=went_wrong, ended_at__gt=now - _LATELY).values_list(
            "queue_id", "state"
        )
    )
    return [
        _ad(entry, closed.get(entry.queue_id, ""), orders.get(entry.queue_id, 0), alive, failed)
        for entry in entries
    ]


def _counts(rows: object) -> Mapping[tuple[int, str], int]:
    counted = rows.annotate(n=Count("pk"))  # type: ignore[attr-defined]
    return {(queue_id, state): n for queue_id, state, n in counted}


def _ad(
    entry: FrontendEntry,
    closed: str,
    waiting: int,
    alive: Mapping[tuple[int, str], int],
    failed: Mapping[tuple[int, str], int],
) -> EntryAd:
    queue = entry.queue
    most = queue.max_pilots if entry.max_pilots is None else entry.max_pilots
    by_word: Counter[str] = Counter()
    for (queue_id, state), n in failed.items():
        if queue_id == queue.pk:
            by_word[_ENDED_WORDS[PilotState(state)].value] += n
    return EntryAd(
        name=str(queue),
        is_open=not closed,
        reason=closed[:MOST_REASON],
        platform=queue.platform,
        cores=queue.cores,
        memory_mb=queue.memory_mb,
        gpus=queue.gpus,
        wall_time_s=queue.wall_time_s,
        max_pilots=min(most, queue.max_pilots),
        waiting=waiting,
        queued=sum(alive.get((queue.pk, state), 0) for state in PENDING),
        running=alive.get((queue.pk, PilotState.RUNNING), 0),
        failed=dict(by_word),
    )


def _closed(remote: RemoteFrontend, queues: Sequence[Queue], now: datetime) -> dict[int, str]:
    """Queues that are sent no pilots of the frontend now, with the reason."""
    if not remote.frontend.is_enabled:
        return {queue.pk: "the factory has switched this frontend off" for queue in queues}
    is_open = set(enabled_queues(now).values_list("pk", flat=True))
    pausing, choices = back_offs(now, [Kind.SUBMIT, Kind.START]), Choices(now)
    closed = {}
    for queue in queues:
        chosen = choices.of(queue, remote.frontend_id)
        contact = pausing.get((queue.pk, chosen.credential_id))
        if queue.pk not in is_open:
            closed[queue.pk] = "the queue or its site is switched off, banned or in downtime"
        elif why := chosen.refusal or (described(contact) if contact else ""):
            closed[queue.pk] = why
    return closed

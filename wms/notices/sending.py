"""Deliveries of notices by e-mail and webhook: packed, claimed, sent at least once, recorded.

A delivery is claimed, sent without any transaction open, and then recorded. Whoever is killed
between the last two has sent it and does not know: it is sent again, with the same id. Any number
of processes send side by side, each to channels that no other one sends to. A channel that fails
backs off; a webhook that takes nothing is switched off in the end, loses what waits in it, and its
user gets a notice. What the user may not see any more is left out.
"""

from __future__ import annotations

import smtplib
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F, Min, Q, QuerySet, Sum

from wms.core.database.locks import advisory_lock
from wms.core.errors import InvalidInput
from wms.notices import packing, webhooks
from wms.notices.conf import Conf, conf
from wms.notices.fanout import notify_user
from wms.notices.messages import Message, headers_of, json_of, subject_of, text_of, type_of
from wms.notices.models import Channel, Delivery, Notice, Outgoing, Rule, SubjectKind
from wms.notices.occurrences import Audience, Occurrence, Subject
from wms.notices.policy import visible_ids
from wms.notices.signing import secret_of
from wms.notices.webhook_addresses import parsed
from wms.notices.webhooks import SendResult, WebhookCall

log = structlog.get_logger(__name__)

#: Channels packed in a cycle, and messages sent in parallel, one of each channel.
_CHANNELS = 200
_SENT_AT_ONCE = 24
_THREADS = 8
#: A cycle that takes longer leaves the rest for the next.
_CYCLE_S = 30.0
#: Most notices read of a channel, and of a message, which tells the number of further ones.
_PACKED = 5000
#: After the first failure a channel is tried again in this time, then in twice of it, and so on.
FIRST_PAUSE = timedelta(seconds=30)
LONGEST_PAUSE = timedelta(hours=1)
GIVE_UP_AFTER = timedelta(hours=24)
_State = Delivery.State


def run_cycle(now: datetime) -> dict[str, Any]:
    """Pack notices and send the deliveries that are due, until the time is up."""
    until = time.monotonic() + _CYCLE_S
    packed, tried = pack(now), 0
    while (count := send_due(now)) > 0:
        tried += count
        if time.monotonic() >= until:
            break
    return {"packed": packed, "tried": tried}


def pack(now: datetime) -> int:
    """Make deliveries of the notices that may be sent now; the number of deliveries."""
    unpacked = Outgoing.objects.filter(delivery=None).order_by().values("channel")
    waiting = Channel.objects.filter(is_enabled=True, pk__in=unpacked).order_by("pk")
    ids = list(waiting.values_list("pk", flat=True)[:_CHANNELS])
    return sum(_pack_channel(pk, now) for pk in ids)


@transaction.atomic
def _pack_channel(channel_id: int, now: datetime) -> int:
    channel = Channel.objects.select_for_update().filter(pk=channel_id, is_enabled=True).first()
    if channel is None:
        return 0
    unpacked = Outgoing.objects.filter(channel=channel, delivery=None).select_related("notice")
    waiting = [
        packing.PendingNotice(
            each.pk, f"{each.notice.subject_kind}:{each.notice.subject_id}", each.created_at
        )
        for each in unpacked.order_by("pk")[:_PACKED]
    ]
    sent = Delivery.objects.filter(
        channel=channel, is_test=False, created_at__gt=now - packing.WINDOW
    )
    recent = [packing.SentMessage(*row) for row in sent.values_list("thread", "created_at")]
    daily = packing.Daily(channel.digest_hour, channel.digest_zone)
    packets = packing.packets(channel.pace, waiting, recent, now, daily)
    for packet in packets:
        delivery = Delivery.objects.create(
            channel=channel, thread=packet.thread, next_at=now, created_at=now
        )
        unpacked.filter(_of_packet(packet, len(waiting))).update(delivery=delivery)
    return len(packets)


def _of_packet(packet: packing.Packet, looked_at: int) -> Q:
    """Notices of a packet. A flood that was read in part goes into its summary as a whole."""
    if not packet.thread and looked_at == _PACKED:
        return Q()
    return Q(pk__in=packet.ids)


def send_due(now: datetime) -> int:
    """Send the deliveries that are due, some in parallel; the number of attempts."""
    with ExitStack() as held:
        attempts = [_composed(delivery) for delivery in claim(now, _free_channels(now, held))]
        with ThreadPoolExecutor(max_workers=_THREADS) as pool:
            results = list(pool.map(_sent, [each for each in attempts if each.message is not None]))
        remaining = iter(results)
        for attempt in attempts:
            record(attempt.delivery, None if attempt.message is None else next(remaining), now=now)
    return len(attempts)


def _due(now: datetime) -> QuerySet[Delivery]:
    return Delivery.objects.filter(state=_State.WAITING, next_at__lte=now, channel__is_enabled=True)


def _free_channels(now: datetime, held: ExitStack) -> list[int]:
    """Channels with something due that nobody else sends to, those first that wait longest.

    They stay this process's own while `held` is open: a receiver gets one message after the other.
    """
    turns = _due(now).order_by().values("channel").annotate(first=Min("next_at"))
    free: list[int] = []
    for turn in turns.order_by("first", "channel")[:_CHANNELS]:
        channel_id = turn["channel"]
        if held.enter_context(advisory_lock(f"notice channel {channel_id}")):
            free.append(channel_id)
        if len(free) == _SENT_AT_ONCE:
            break
    return free


@transaction.atomic
def claim(now: datetime, channels: Collection[int]) -> list[Delivery]:
    """Deliveries that are due, one of each of these channels, taken until their next try.

    Whose channel has many of them waits no longer than others, and keeps none of them waiting.
    """
    due = _due(now)
    # What was tried least: one that its receiver never takes holds no other up.
    order = ("channel", "attempts", "next_at", "created_at")
    one_each = due.filter(channel__in=channels).order_by(*order)
    ids = list(one_each.distinct("channel").values_list("pk", flat=True))
    rows = due.filter(pk__in=ids).select_related("channel__user").order_by("next_at", "created_at")
    claimed = list(rows.select_for_update(of=("self",), skip_locked=True))
    waiting = Delivery.objects.filter(state=_State.WAITING, channel__in=channels).order_by()
    in_vain = dict(waiting.values_list("channel").annotate(Sum("attempts")))
    for row in claimed:
        row.attempts += 1
        row.next_at = now + pause_after(1 + in_vain[row.channel_id])
    Delivery.objects.bulk_update(claimed, ["attempts", "next_at"])
    return claimed


def pause_after(attempts: int) -> timedelta:
    """Backoff of a channel after this many failed attempts."""
    doublings: int = 2 ** min(attempts - 1, 20)
    return min(FIRST_PAUSE * doublings, LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """One attempt of a delivery; without a message nothing is left to send."""

    delivery: Delivery
    channel: Channel
    message: Message | None
    conf: Conf


def _composed(delivery: Delivery) -> DeliveryAttempt:
    """The message of a delivery: of the notices whose objects its user may see now."""
    channel, settings = delivery.channel, conf()
    notices, more = ([], 0) if delivery.is_test else _visible_notices(delivery, channel)
    user = channel.user
    message = None
    if user.is_active and (notices or delivery.is_test):
        message = Message(
            id=str(delivery.pk),
            type=type_of(delivery, channel),
            thread=delivery.thread,
            username=user.get_username(),
            portal=settings.public_url,
            notices=notices,
            more=more,
        )
    return DeliveryAttempt(delivery, channel, message, settings)


def _visible_notices(delivery: Delivery, channel: Channel) -> tuple[list[Notice], int]:
    """The latest notices of a delivery, and how many more there are."""
    notices_of_delivery = (
        Notice.objects.filter(outgoing__delivery=delivery).order_by("-pk").distinct()
    )
    notices = list(notices_of_delivery[:_PACKED])
    more = notices_of_delivery.count() - _PACKED if len(notices) == _PACKED else 0
    subjects: dict[str, set[str]] = {}
    for notice in notices:
        subjects.setdefault(notice.subject_kind, set()).add(notice.subject_id)
    seen = {
        kind: visible_ids(channel.user, SubjectKind(kind), ids) for kind, ids in subjects.items()
    }
    visible = [notice for notice in notices if notice.subject_id in seen[notice.subject_kind]]
    return visible, more


def _sent(attempt: DeliveryAttempt) -> SendResult:
    """Send a message once; an error of the portal's own fails this message alone."""
    try:
        return send(attempt)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is no other's trouble
        # Without its text and its frames, in which addresses and secrets are.
        name = type(error).__name__
        log.error("delivery_broken", delivery=str(attempt.delivery.pk), error=name)
        return SendResult(f"the portal failed with it: {name}")


def send(attempt: DeliveryAttempt) -> SendResult:
    """Send a message once. It asks no database: it runs beside others."""
    assert attempt.message is not None
    if attempt.channel.kind == Channel.Kind.EMAIL:
        return _mail(attempt.message, attempt.channel.user.email, attempt.conf)
    return _post(attempt, attempt.message)


def _mail(message: Message, address: str, settings: Conf) -> SendResult:
    if not settings.is_email_on:
        return SendResult("this portal sends no e-mail")
    if not address:
        return SendResult("the account has no e-mail address")
    email = EmailMessage(
        subject_of(message), text_of(message), settings.email_from, [address],
        headers=headers_of(message),
    )  # fmt: skip
    try:
        email.send()
    except (smtplib.SMTPException, OSError, ValueError) as error:
        # Its text may repeat what was said to the server.
        return SendResult(f"the mail server did not take it: {type(error).__name__}")
    return SendResult()


def _post(attempt: DeliveryAttempt, message: Message) -> SendResult:
    secret = secret_of(attempt.channel)
    if secret is None:
        return SendResult(
            "the portal has another key than when the secret was made: renew the secret"
        )
    try:
        target = parsed(attempt.channel.url, allows_http=attempt.conf.is_plain_http_allowed)
    except InvalidInput as error:
        return SendResult(str(error))
    call = WebhookCall(target, secret, message.id, message.type, json_of(message))
    return webhooks.post(call, allowed=attempt.conf.webhooks_allowed)


@transaction.atomic
def record(delivery: Delivery, outcome: SendResult | None, *, now: datetime) -> None:
    """Store the result of an attempt; None stands for a message without visible notices."""
    if outcome is None:
        _end(delivery, _State.DROPPED, "", now)
    elif outcome.is_accepted:
        _end(delivery, _State.SENT, "", now)
    elif delivery.is_test or now - delivery.created_at >= GIVE_UP_AFTER:
        _end(delivery, _State.GIVEN_UP, outcome.error, now)
        if not delivery.is_test and delivery.channel.kind == Channel.Kind.WEBHOOK:
            _switch_off(delivery.channel, outcome.error, now)
    else:
        waiting = Delivery.objects.filter(pk=delivery.pk, state=_State.WAITING)
        waiting.update(last_error=outcome.error[:300])
        _delay_others(delivery)
    log.info(
        "delivery_tried", delivery=str(delivery.pk), channel=delivery.channel_id,
        attempt=delivery.attempts, error="" if outcome is None else outcome.error,
    )  # fmt: skip


def _delay_others(failed: Delivery) -> None:
    """Delay the channel's other deliveries until this one is tried again."""
    others = Delivery.objects.filter(
        channel=failed.channel_id, state=_State.WAITING, is_test=False, next_at__lt=failed.next_at
    )
    others.update(next_at=failed.next_at)


def _end(delivery: Delivery, state: Delivery.State, error: str, now: datetime) -> None:
    waiting = Delivery.objects.filter(pk=delivery.pk, state=_State.WAITING)
    waiting.update(state=state, ended_at=now, last_error=error[:300])


def _switch_off(channel: Channel, error: str, now: datetime) -> None:
    """Switch off a webhook that accepted nothing for too long, and notify its user."""
    sent = Delivery.objects.filter(channel=channel, state=_State.SENT, is_test=False)
    if sent.filter(ended_at__gt=now - GIVE_UP_AFTER).exists():
        return  # it takes others: this one is what it does not like
    hours = int(GIVE_UP_AFTER.total_seconds() // 3600)
    reason = f"it took nothing for {hours} hours: {error}"
    on = Channel.objects.filter(pk=channel.pk, is_enabled=True)
    if not on.update(is_enabled=False, off_reason=reason):
        return
    drop_waiting([channel.pk], now)
    notify_user(
        channel.user_id,
        Occurrence(
            kind=Notice.Kind.SWITCHED_OFF,
            subject=Subject(SubjectKind.CHANNEL, str(channel.pk)),
            key=f"channel:{channel.pk}:{now.isoformat()}",
            title="A webhook of yours was switched off",
            text=reason,
            at=now,
            audience=Audience(rule=Rule.DAG),
        ),
        now,
    )


def drop_waiting(channel_ids: Sequence[int], now: datetime) -> None:
    """Drop the unsent deliveries of these channels, which the caller has switched off."""
    Outgoing.objects.filter(channel__in=channel_ids, delivery=None).delete()
    waiting = Delivery.objects.filter(channel__in=channel_ids, state=_State.WAITING)
    waiting.update(
        state=_State.DROPPED, ended_at=now, attempts=F("attempts"),
        last_error="the channel was switched off",
    )  # fmt: skip

"""Services on a user's own subscriptions, channels (with webhook secrets) and read marks.

Audited, but for read marks. Also a test message by a channel. A channel that is switched off loses
what waits in it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import available_timezones

from django.db import transaction
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, InvalidInput, NotFound, TooMany
from wms.core.loops import wake_loop
from wms.core.models import User
from wms.dags.reading.selectors import find_dag
from wms.notices.conf import conf
from wms.notices.fanout import SEND_TASK
from wms.notices.models import Channel, Delivery, Notice, Rule, Subscription
from wms.notices.packing import Daily
from wms.notices.policy import require_person, require_rule
from wms.notices.selectors import find_channel, find_subscription
from wms.notices.sending import drop_waiting
from wms.notices.signing import check_of, new_nonce, new_secret
from wms.notices.webhook_addresses import parsed
from wms.sites.selectors import find_visible_site

MAX_SUBSCRIPTIONS = 500
MAX_WEBHOOKS = 5
#: A channel is tested at most once in this time.
TEST_PAUSE = timedelta(seconds=30)


@transaction.atomic
def subscribe(
    rule: str, *, dag_id: int | None = None, site: str = "", actor: Actor
) -> Subscription:
    """Subscribe the actor; an existing subscription stays as it is.

    Raises InvalidInput, NotFound for an object that the actor may not see, NotPermitted, TooMany.
    """
    user = require_person(actor, "subscribe")
    chosen = _rule(rule, dag_id, site)
    require_rule(user, chosen)
    dag = None if dag_id is None else find_dag(user, dag_id)
    place = find_visible_site(user, site) if site else None
    _lock(user)
    mine = Subscription.objects.filter(user=user)
    known = mine.filter(rule=chosen, dag=dag, site=place).first()
    if known is not None:
        return known
    if mine.count() >= MAX_SUBSCRIPTIONS:
        raise TooMany(f"You have {MAX_SUBSCRIPTIONS} subscriptions already: remove one first.")
    made = Subscription.objects.create(user=user, rule=chosen, dag=dag, site=place)
    _record_subscription("subscribe", made, actor)
    return made


def _rule(rule: str, dag_id: int | None, site: str) -> Rule:
    if rule not in Rule.values:
        raise InvalidInput.of(f"must be one of {', '.join(Rule.values)}", field="rule")
    chosen = Rule(rule)
    if (chosen == Rule.DAG) != (dag_id is not None):
        raise InvalidInput.of(f"belongs to the rule {Rule.DAG}, and to no other", field="dag")
    if site and chosen != Rule.SITE:
        raise InvalidInput.of(f"belongs to the rule {Rule.SITE}, and to no other", field="site")
    return chosen


def _record_subscription(action: str, row: Subscription, actor: Actor) -> None:
    """Audit a subscription as an action of its user, not on the object."""
    facts: dict[str, Any] = {"rule": row.rule}
    facts |= {} if row.dag is None else {"dag": row.dag.pk}
    facts |= {} if row.site is None else {"site": row.site.name}
    record_action(action, target=f"subscription {row.pk}", actor=actor, facts=facts)


def _lock(user: User) -> None:
    """Lock the user's row, so that limits per user are counted by one at a time."""
    User.objects.select_for_update().only("pk").get(pk=user.pk)


@transaction.atomic
def unsubscribe(subscription_id: int, *, actor: Actor) -> None:
    """Remove a subscription of the actor. Raises NotFound for one that is not theirs."""
    user = require_person(actor, "unsubscribe")
    known = find_subscription(user, subscription_id)
    _record_subscription("unsubscribe", known, actor)
    Subscription.objects.filter(pk=known.pk).delete()


def mark_read(notice_ids: Collection[int] | None, *, actor: Actor, now: datetime) -> int:
    """Mark notices of the actor as read, or all of them for None; how many were unread."""
    user = require_person(actor, "read notices")
    unread = Notice.objects.filter(user=user, read_at=None)
    if notice_ids is not None:
        unread = unread.filter(pk__in=notice_ids)
    return unread.update(read_at=now)


@dataclass(frozen=True, slots=True)
class MadeChannel:
    """A channel, and the secret of a webhook, which is shown this once."""

    row: Channel
    secret: str = ""


@transaction.atomic
def add_channel(kind: str, *, url: str = "", pace: str = "now", actor: Actor) -> MadeChannel:
    """Add a channel. Raises InvalidInput, Conflict and TooMany."""
    user = require_person(actor, "add channels")
    if kind not in Channel.Kind.values:
        raise InvalidInput.of(f"must be one of {', '.join(Channel.Kind.values)}", field="kind")
    _check_pace(pace)
    _lock(user)
    row = Channel(user=user, kind=kind, pace=pace)
    secret = ""
    if kind == Channel.Kind.EMAIL:
        _check_email(user)
    else:
        row.url = _checked_url(user, url)
        secret = _renewed(row)
    row.save()
    _record("add channel", row, actor)
    return MadeChannel(row, secret)


def _check_pace(pace: str) -> None:
    if pace not in Channel.Pace.values:
        raise InvalidInput.of(f"must be one of {', '.join(Channel.Pace.values)}", field="pace")


def _check_daily(daily: Daily) -> None:
    if not 0 <= daily.hour < 24:
        raise InvalidInput.of("must be from 0 to 23", field="digest_hour")
    # Not by opening what may be a path.
    if daily.zone not in available_timezones():
        raise InvalidInput.of("is no time zone", field="digest_zone")


def _check_email(user: User) -> None:
    if not conf().is_email_on:
        raise Conflict("This portal sends no e-mail: its administrator has named no mail server.")
    if not user.email:
        raise Conflict("Your account has no e-mail address: ask an administrator to enter it.")
    if Channel.objects.filter(user=user, kind=Channel.Kind.EMAIL).exists():
        raise Conflict("You have a channel for e-mail already.")


def _checked_url(user: User, url: str) -> str:
    cleaned = url.strip()
    parsed(cleaned, allows_http=conf().is_plain_http_allowed)
    mine = Channel.objects.filter(user=user, kind=Channel.Kind.WEBHOOK)
    if mine.filter(url=cleaned).exists():
        raise InvalidInput.of("is one of your webhooks already", field="url")
    if mine.count() >= MAX_WEBHOOKS:
        raise TooMany(f"You have {MAX_WEBHOOKS} webhooks already: remove one first.")
    return cleaned


def _renewed(row: Channel) -> str:
    """A new secret for the channel, which has to be stored."""
    row.nonce = new_nonce()
    secret = new_secret(row.nonce)
    row.secret_check, row.sealed_secret = check_of(secret), ""
    return secret


@transaction.atomic
def change_channel(
    channel_id: int,
    *,
    pace: str | None = None,
    daily: Daily | None = None,
    is_enabled: bool | None = None,
    actor: Actor,
) -> Channel:
    """Change when a channel sends, or switch it on or off; off it loses what waits in it.

    `daily` is when a daily digest leaves. Raises NotFound and InvalidInput.
    """
    row = _locked(channel_id, actor)
    facts: dict[str, Any] = {}
    if pace is not None and pace != row.pace:
        _check_pace(pace)
        facts["pace"], row.pace = [row.pace, pace], pace
    if daily is not None and daily != Daily(row.digest_hour, row.digest_zone):
        _check_daily(daily)
        facts["daily"] = [
            f"{row.digest_hour}:00 {row.digest_zone}",
            f"{daily.hour}:00 {daily.zone}",
        ]
        row.digest_hour, row.digest_zone = daily.hour, daily.zone
    if is_enabled is not None and is_enabled != row.is_enabled:
        facts["is_enabled"], row.is_enabled = [row.is_enabled, is_enabled], is_enabled
        row.off_reason = "" if is_enabled else "switched off by hand"
    if not facts:
        return row
    row.save(update_fields=["pace", "digest_hour", "digest_zone", "is_enabled", "off_reason"])
    if "is_enabled" in facts:
        # Switched on, too: what was told while it went off is no news any more.
        drop_waiting([row.pk], timezone.now())
    _record("change channel", row, actor, **facts)
    return row


@transaction.atomic
def renew_secret(channel_id: int, *, actor: Actor) -> MadeChannel:
    """Give a webhook another secret; the former one signs nothing any more. Raises Conflict."""
    row = _locked(channel_id, actor)
    if row.kind != Channel.Kind.WEBHOOK:
        raise Conflict("Only webhooks have a secret.")
    secret = _renewed(row)
    row.save(update_fields=["nonce", "secret_check", "sealed_secret"])
    _record("renew secret", row, actor)
    return MadeChannel(row, secret)


@transaction.atomic
def remove_channel(channel_id: int, *, actor: Actor) -> None:
    """Remove a channel, with its log."""
    row = _locked(channel_id, actor)
    _record("remove channel", row, actor)
    row.delete()


@transaction.atomic
def send_test(channel_id: int, *, actor: Actor, now: datetime) -> Delivery:
    """Have a test sent by a channel, soon. Raises Conflict for one that is off, and TooMany."""
    row = _locked(channel_id, actor)
    if not row.is_enabled:
        raise Conflict("This channel is switched off: switch it on first.")
    tests = Delivery.objects.filter(channel=row, is_test=True)
    if tests.filter(created_at__gt=now - TEST_PAUSE).exists():
        raise TooMany(f"A test was sent just now: wait {TEST_PAUSE.seconds} seconds.")
    delivery = Delivery.objects.create(channel=row, is_test=True, next_at=now, created_at=now)
    _record("test channel", row, actor)
    transaction.on_commit(partial(wake_loop, SEND_TASK))
    return delivery


def _locked(channel_id: int, actor: Actor) -> Channel:
    user = require_person(actor, "change channels")
    found = find_channel(user, channel_id)
    locked = Channel.objects.select_for_update().filter(pk=found.pk).first()
    if locked is None:
        raise NotFound(f"There is no channel {channel_id}.")
    return locked


def _record(action: str, row: Channel, actor: Actor, **facts: Any) -> None:
    """The address of a webhook may be a secret itself: only its host is told."""
    target = f"user {actor.name}, channel {row.pk}"
    if row.kind == Channel.Kind.WEBHOOK:
        facts["host"] = parsed(row.url, allows_http=True).authority
    record_action(action, target=target, actor=actor, facts={"kind": row.kind, **facts})

"""Making notices of what happened, for those who asked for it and may see it.

What is announced is deleted in the transaction that makes the notices, and so are their ways out
written: a cycle that is killed, skipped or run twice at once neither loses nor doubles a notice.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from wms.core.loops import wake_loop
from wms.core.models import InboxEntry, User
from wms.notices.conditions import happenings_by_looking
from wms.notices.models import (
    Channel,
    Delivery,
    Notice,
    Outgoing,
    Rule,
    SubjectKind,
    Subscription,
)
from wms.notices.policy import may_subscribe, visible_ids
from wms.notices.reading import TOPICS, Audience, Happening, happenings_of

log = structlog.get_logger(__name__)

#: So many announced events are read in one transaction.
BATCH = 500
#: A user keeps so many notices; older ones go, except those that have still to be sent.
MAX_KEPT = 500
#: A cycle that takes longer leaves the rest for the next.
_CYCLE_S = 10.0
#: What is in the way of a batch without lying in an event.
_NOT_ITS_FAULT = (SoftTimeLimitExceeded, OperationalError, InterfaceError)
#: The task that packs and sends.
SEND_TASK = "wms.notices.send"


@dataclass(frozen=True, slots=True)
class _Told:
    user_id: int
    happening: Happening


def run_cycle(now: datetime) -> dict[str, Any]:
    """Tell of what was announced, and of what begins and ends by the clock."""
    until = time.monotonic() + _CYCLE_S
    read = 0
    while (count := read_some(now)) > 0:
        read += count
        if time.monotonic() >= until:
            break
    return {"read": read, "looked": look_around(now)}


def read_some(now: datetime) -> int:
    """Tell of a batch of announced events; how many there were."""
    waiting = InboxEntry.objects.filter(topic__in=TOPICS).order_by("pk")
    try:
        return _read(waiting, now)
    except _NOT_ITS_FAULT:
        raise
    except Exception:
        log.exception("notices_not_read")
    return _read_one_by_one(list(waiting.values_list("pk", flat=True)[:BATCH]), now)


@transaction.atomic
def _read(waiting: QuerySet[InboxEntry], now: datetime) -> int:
    entries = list(waiting.select_for_update(skip_locked=True)[:BATCH])
    if not entries:
        return 0
    tell(happenings_of(entries, now), now)
    InboxEntry.objects.filter(pk__in=[entry.pk for entry in entries]).delete()
    return len(entries)


def _read_one_by_one(entry_ids: Sequence[int], now: datetime) -> int:
    """What cannot be told is left out, so that it keeps nothing else back; its event stays."""
    for pk in entry_ids:
        entry = InboxEntry.objects.filter(pk=pk)
        try:
            _read(entry, now)
        except _NOT_ITS_FAULT:
            raise
        except Exception:
            told = entry.values("topic", "key", "kind", "subject_id").first()
            log.exception("notice_not_made", entry=told)
            entry.delete()
    return len(entry_ids)


@transaction.atomic
def look_around(now: datetime) -> int:
    """Tell of what has no event; how much there was."""
    found = happenings_by_looking(now)
    tell(found, now)
    return len(found)


def tell(happenings: Sequence[Happening], now: datetime) -> None:
    """Make the notices; inside of the caller's transaction."""
    if happenings:
        store(_visible(_concerned(happenings)), now)


def _concerned(happenings: Sequence[Happening]) -> list[tuple[User, Happening]]:
    """Who asked for what, each once."""
    subscriptions = _subscriptions_to(happenings)
    pairs: list[tuple[User, Happening]] = []
    for happening in happenings:
        users = {
            each.user
            for each in subscriptions
            if _fits(each, happening.audience) and may_subscribe(each.user, Rule(each.rule))
        }
        pairs += [(user, happening) for user in sorted(users, key=lambda user: user.pk)]
    return pairs


def _subscriptions_to(happenings: Sequence[Happening]) -> list[Subscription]:
    audiences = [happening.audience for happening in happenings]
    dags = {each.dag_id for each in audiences if each.dag_id is not None}
    owners = {owner for each in audiences for owner in each.owners or ()}
    rules = {each.rule for each in audiences}
    found = Subscription.objects.filter(
        Q(rule=Rule.DAG, dag__in=dags)
        | Q(rule__in=rules - {Rule.SITE, Rule.LOOPS}, user__in=owners)
        | Q(rule__in=rules & {Rule.SITE, Rule.LOOPS})
    )
    return list(found.select_related("user").order_by("pk"))


def _fits(subscription: Subscription, audience: Audience) -> bool:
    if subscription.user.get_username() == audience.but:
        return False
    if subscription.rule == Rule.DAG:
        return subscription.dag_id == audience.dag_id
    if subscription.rule != audience.rule:
        return False
    if subscription.rule == Rule.SITE:
        return subscription.site_id in {None, audience.site_id}
    return audience.owners is None or subscription.user_id in audience.owners


def _visible(pairs: Iterable[tuple[User, Happening]]) -> list[_Told]:
    """Those pairs in which the user may see the object now."""
    wanted: dict[tuple[User, SubjectKind], set[str]] = defaultdict(set)
    for user, happening in pairs:
        wanted[user, happening.subject.kind].add(happening.subject.id)
    seen = {key: visible_ids(*key, ids) for key, ids in wanted.items()}
    return [
        _Told(user.pk, happening)
        for user, happening in pairs
        if happening.subject.id in seen[user, happening.subject.kind]
    ]


def store(told: Sequence[_Told], now: datetime) -> None:
    """Add the notices that are new, bring those with a count up to date, and open ways out."""
    known = {
        (notice.user_id, notice.key): notice
        for notice in Notice.objects.select_for_update().filter(
            user__in={each.user_id for each in told}, key__in={each.happening.key for each in told}
        )
    }
    latest = {(each.user_id, each.happening.key): each for each in told}
    made = Notice.objects.bulk_create(
        [_notice(each) for key, each in latest.items() if key not in known], batch_size=1000
    )
    grown = _grown(known, latest)
    _open_ways(made + grown, now)
    _prune({notice.user_id for notice in made})


def told_to(user_id: int, happening: Happening, now: datetime) -> None:
    """Tell one user what concerns nobody else; inside of the caller's transaction."""
    store([_Told(user_id, happening)], now)


def _notice(told: _Told) -> Notice:
    happening = told.happening
    return Notice(
        user_id=told.user_id,
        kind=happening.kind,
        subject_kind=happening.subject.kind,
        subject_id=happening.subject.id,
        title=happening.title[:200],
        text=happening.text[:2000],
        count=1 if happening.count is None else happening.count,
        key=happening.key,
        happened_at=happening.at,
    )


def _grown(
    known: Mapping[tuple[int, str], Notice], latest: Mapping[tuple[int, str], _Told]
) -> list[Notice]:
    """Of the known notices those that count more now, which makes them unread again."""
    grown = []
    for key, notice in known.items():
        happening = latest[key].happening
        if happening.count is None or happening.count == notice.count:
            continue
        if happening.count > notice.count:
            notice.read_at = None
            grown.append(notice)
        notice.count, notice.text = happening.count, happening.text
        notice.happened_at = happening.at
        notice.save(update_fields=["count", "text", "happened_at", "read_at"])
    return grown


def _open_ways(notices: Collection[Notice], now: datetime) -> None:
    """Let the notices leave by all channels of their users that are on."""
    by_user: dict[int, list[int]] = defaultdict(list)
    users = {notice.user_id for notice in notices}
    channels = Channel.objects.filter(user__in=users, is_enabled=True).order_by("pk")
    for user_id, channel_id in channels.values_list("user_id", "pk"):
        by_user[user_id].append(channel_id)
    ways = [
        Outgoing(notice=notice, channel_id=channel_id, created_at=now)
        for notice in notices
        for channel_id in by_user[notice.user_id]
    ]
    # One that waits already tells the new count as well.
    Outgoing.objects.bulk_create(ways, ignore_conflicts=True, batch_size=1000)
    if ways:
        transaction.on_commit(partial(wake_loop, SEND_TASK))


def _prune(user_ids: Collection[int]) -> None:
    """Let users keep their latest notices."""
    unsent = Outgoing.objects.filter(notice=OuterRef("pk")).filter(
        Q(delivery=None) | Q(delivery__state=Delivery.State.WAITING)
    )
    for user_id in sorted(user_ids):
        of_user = Notice.objects.filter(user=user_id)
        kept = of_user.order_by("-pk").values_list("pk", flat=True)[MAX_KEPT : MAX_KEPT + 1]
        for border in kept:
            of_user.filter(~Exists(unsent), pk__lte=border).delete()

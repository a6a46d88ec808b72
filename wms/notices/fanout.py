"""Fan-out, a control loop: notices of events and conditions, for users who subscribed or asked.

They must still be allowed to see the object. Announced events are deleted in the transaction that
makes the notices and queues them for their channels: a cycle that is killed, skipped or run twice
at once neither loses nor doubles a notice. Also a notice for one user, and the removal of a user's
oldest ones.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from wms.accounting.walls import walls_of
from wms.core.loops import wake_loop
from wms.core.models import InboxEntry, User
from wms.notices.conditions import occurrences_by_clock
from wms.notices.models import (
    Channel,
    Delivery,
    Notice,
    Outgoing,
    Rule,
    SubjectKind,
    Subscription,
)
from wms.notices.occurrences import TOPICS, Audience, Occurrence, occurrences_of
from wms.notices.policy import may_subscribe, visible_ids

log = structlog.get_logger(__name__)

#: Announced events read in one transaction.
BATCH = 500
#: A user keeps so many notices; older ones go, except those that have still to be sent.
MAX_KEPT = 500
#: A cycle that takes longer leaves the rest for the next.
_CYCLE_S = 10.0
#: Errors that are no fault of an event in the batch.
_NOT_ITS_FAULT = (SoftTimeLimitExceeded, OperationalError, InterfaceError)
#: Rules about what has no owner: all who have subscribed and may see it are told.
_OF_NOBODY = frozenset({Rule.SITE, Rule.CREDENTIALS, Rule.LOOPS})
#: The task that packs and sends.
SEND_TASK = "wms.notices.send"


@dataclass(frozen=True, slots=True)
class _NewNotice:
    user_id: int
    occurrence: Occurrence


def run_cycle(now: datetime) -> dict[str, Any]:
    """Make notices of announced events, and of conditions that began or ended by the clock."""
    until = time.monotonic() + _CYCLE_S
    read = 0
    while (count := process_batch(now)) > 0:
        read += count
        if time.monotonic() >= until:
            break
    return {"read": read, "looked": check_conditions(now)}


def process_batch(now: datetime) -> int:
    """Make notices of a batch of announced events; the number of events."""
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
    notify(occurrences_of(entries, now), now)
    InboxEntry.objects.filter(pk__in=[entry.pk for entry in entries]).delete()
    return len(entries)


def _read_one_by_one(entry_ids: Sequence[int], now: datetime) -> int:
    """Pass over an entry that fails, so that it holds up no other; its event stays."""
    for pk in entry_ids:
        entry = InboxEntry.objects.filter(pk=pk)
        try:
            _read(entry, now)
        except _NOT_ITS_FAULT:
            raise
        except Exception:
            new_notices = entry.values("topic", "key", "kind", "subject_id").first()
            log.exception("notice_not_made", entry=new_notices)
            entry.delete()
    return len(entry_ids)


@transaction.atomic
def check_conditions(now: datetime) -> int:
    """Make notices of conditions without an event; the number of occurrences."""
    found = occurrences_by_clock(now)
    notify(found, now)
    return len(found)


def notify(occurrences: Sequence[Occurrence], now: datetime) -> None:
    """Make the notices of occurrences, inside of the caller's transaction."""
    if occurrences:
        store(_visible(_recipients(occurrences)), now)


def _recipients(occurrences: Sequence[Occurrence]) -> list[tuple[User, Occurrence]]:
    """Pairs of subscribers and occurrences, each once."""
    subscriptions = _subscriptions_to(occurrences)
    asking = {pk for occurrence in occurrences for pk in occurrence.audience.asking}
    owners = User.objects.in_bulk(asking) if asking else {}
    pairs: list[tuple[User, Occurrence]] = []
    for occurrence in occurrences:
        users = {
            each.user
            for each in subscriptions
            if _matches(each, occurrence.audience) and may_subscribe(each.user, Rule(each.rule))
        }
        users |= {owners[pk] for pk in occurrence.audience.asking if owners[pk].is_active}
        pairs += [(user, occurrence) for user in sorted(users, key=lambda user: user.pk)]
    return pairs


def _subscriptions_to(occurrences: Sequence[Occurrence]) -> list[Subscription]:
    audiences = [occurrence.audience for occurrence in occurrences]
    dags = {each.dag_id for each in audiences if each.dag_id is not None}
    owners = {owner for each in audiences for owner in each.owners or ()}
    rules = {each.rule for each in audiences}
    found = Subscription.objects.filter(
        Q(rule=Rule.DAG, dag__in=dags)
        | Q(rule__in=rules - _OF_NOBODY, user__in=owners)
        | Q(rule__in=rules & _OF_NOBODY)
    )
    return list(found.select_related("user").order_by("pk"))


def _matches(subscription: Subscription, audience: Audience) -> bool:
    if subscription.user.get_username() == audience.excluded_user:
        return False
    if subscription.rule == Rule.DAG:
        return subscription.dag_id == audience.dag_id
    if subscription.rule != audience.rule:
        return False
    if subscription.rule == Rule.SITE:
        return subscription.site_id in {None, audience.site_id}
    return audience.owners is None or subscription.user_id in audience.owners


def _visible(pairs: Iterable[tuple[User, Occurrence]]) -> list[_NewNotice]:
    """Notices to be made: of the pairs in which the user may see the object now."""
    wanted: dict[tuple[User, SubjectKind], set[str]] = defaultdict(set)
    for user, occurrence in pairs:
        wanted[user, occurrence.subject.kind].add(occurrence.subject.id)
    seen = {key: visible_ids(*key, ids) for key, ids in wanted.items()}
    return [
        _NewNotice(user.pk, _told_to(user, occurrence))
        for user, occurrence in pairs
        if occurrence.subject.id in seen[user, occurrence.subject.kind]
    ]


def _told_to(user: User, occurrence: Occurrence) -> Occurrence:
    """The occurrence with no words of others that the user may not see."""
    if occurrence.common_text is None or walls_of(user).is_open:
        return occurrence
    return replace(occurrence, text=occurrence.common_text)


def store(new_notices: Sequence[_NewNotice], now: datetime) -> None:
    """Store new notices, update those with a count, and queue them for channels."""
    known = {
        (notice.user_id, notice.key): notice
        for notice in Notice.objects.select_for_update().filter(
            user__in={each.user_id for each in new_notices},
            key__in={each.occurrence.key for each in new_notices},
        )
    }
    latest = {(each.user_id, each.occurrence.key): each for each in new_notices}
    made = Notice.objects.bulk_create(
        [_notice(each) for key, each in latest.items() if key not in known], batch_size=1000
    )
    updated = _updated(known, latest)
    _queue_for_channels(made + updated, now)
    _prune({notice.user_id for notice in made})


def notify_user(user_id: int, occurrence: Occurrence, now: datetime) -> None:
    """Make a notice for one user, inside of the caller's transaction."""
    store([_NewNotice(user_id, occurrence)], now)


def _notice(new_notices: _NewNotice) -> Notice:
    occurrence = new_notices.occurrence
    return Notice(
        user_id=new_notices.user_id,
        kind=occurrence.kind,
        subject_kind=occurrence.subject.kind,
        subject_id=occurrence.subject.id,
        title=occurrence.title[:200],
        text=occurrence.text[:2000],
        count=1 if occurrence.count is None else occurrence.count,
        key=occurrence.key,
        happened_at=occurrence.at,
    )


def _updated(
    known: Mapping[tuple[int, str], Notice], latest: Mapping[tuple[int, str], _NewNotice]
) -> list[Notice]:
    """The known notices whose count has risen; they become unread again."""
    updated = []
    for key, notice in known.items():
        occurrence = latest[key].occurrence
        if occurrence.count is None or occurrence.count == notice.count:
            continue
        if occurrence.count > notice.count:
            notice.read_at = None
            updated.append(notice)
        notice.count, notice.text = occurrence.count, occurrence.text
        notice.happened_at = occurrence.at
        notice.save(update_fields=["count", "text", "happened_at", "read_at"])
    return updated


def _queue_for_channels(notices: Collection[Notice], now: datetime) -> None:
    """Queue notices for every enabled channel of their users."""
    by_user: dict[int, list[int]] = defaultdict(list)
    users = {notice.user_id for notice in notices}
    channels = Channel.objects.filter(user__in=users, is_enabled=True).order_by("pk")
    for user_id, channel_id in channels.values_list("user_id", "pk"):
        by_user[user_id].append(channel_id)
    outgoing = [
        Outgoing(notice=notice, channel_id=channel_id, created_at=now)
        for notice in notices
        for channel_id in by_user[notice.user_id]
    ]
    # One that waits already tells the new count as well.
    Outgoing.objects.bulk_create(outgoing, ignore_conflicts=True, batch_size=1000)
    if outgoing:
        transaction.on_commit(partial(wake_loop, SEND_TASK))


def _prune(user_ids: Collection[int]) -> None:
    """Remove all but the latest notices of these users; unsent ones stay."""
    unsent = Outgoing.objects.filter(notice=OuterRef("pk")).filter(
        Q(delivery=None) | Q(delivery__state=Delivery.State.WAITING)
    )
    for user_id in sorted(user_ids):
        of_user = Notice.objects.filter(user=user_id)
        kept = of_user.order_by("-pk").values_list("pk", flat=True)[MAX_KEPT : MAX_KEPT + 1]
        for border in kept:
            of_user.filter(~Exists(unsent), pk__lte=border).delete()

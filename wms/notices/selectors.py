"""Selectors of a user's notices, subscriptions, channels and deliveries.

Also numbers of unread notices of users, and DAGs marked where the user has subscribed.
"""

from __future__ import annotations

from typing import Any

from django.db.models import (
    BigIntegerField,
    Case,
    Count,
    Exists,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    When,
)
from django.db.models.functions import Cast, Coalesce

from wms.accounting.frontends import DEFAULT_KEY
from wms.accounting.selectors import visible_frontends
from wms.accounting.walls import seen_or_all, walls_of
from wms.core.errors import NotFound
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.reading.selectors import visible_dags
from wms.failures.selectors import visible_groups
from wms.jobs.selectors import visible_jobs
from wms.notices.models import Channel, Delivery, Notice, Rule, SubjectKind, Subscription

#: Latest deliveries in the log.
DELIVERIES_SHOWN = 20


def own_notices(user: User) -> QuerySet[Notice]:
    """Notices of the user about what the user may see, latest first."""
    notices = Notice.objects.filter(user=user).order_by("-pk")
    if not user.is_active:
        return notices.none()
    return notices if walls_of(user).is_open else _about_visible(user, notices)


def _about_visible(user: User, notices: QuerySet[Notice]) -> QuerySet[Notice]:
    seen: dict[SubjectKind, QuerySet[Any]] = {
        SubjectKind.DAG: visible_dags(user),
        SubjectKind.JOB: visible_jobs(user),
        SubjectKind.FAILURES: visible_groups(user),
    }
    # Subjects of other kinds have names.
    number = Case(
        When(subject_kind__in=list(seen), then=Cast("subject_id", BigIntegerField())),
        output_field=BigIntegerField(),
    )
    about = ~Q(subject_kind__in=[*seen, SubjectKind.FRONTEND])
    own = Q(subject_id__in=visible_frontends(user).values("name"))
    own |= Q(subject_id=DEFAULT_KEY) if walls_of(user).lets_in(None) else Q()
    about |= Q(own, subject_kind=SubjectKind.FRONTEND)
    for kind, rows in seen.items():
        about |= Q(Exists(rows.filter(pk=OuterRef("subject_number"))), subject_kind=kind)
    return notices.alias(subject_number=number).filter(about)


def with_unread(users: QuerySet[User]) -> QuerySet[User]:
    """Users with the number of all their unread notices as `unread_total`, in the same query."""
    unread = Notice.objects.filter(user=OuterRef("pk"), read_at=None).order_by()
    counted = unread.values("user").annotate(n=Count("pk")).values("n")
    return users.annotate(unread_total=Coalesce(Subquery(counted, output_field=IntegerField()), 0))


def count_unread(user: User) -> int:
    """Unread notices about what a user, read `with_unread`, may see: it mostly takes no query."""
    total: int = getattr(user, "unread_total", 0)
    if not total or walls_of(user).is_open:
        return total
    return own_notices(user).filter(read_at=None).count()


def own_subscriptions(user: User) -> QuerySet[Subscription]:
    """Subscriptions of the user: rules first, then single visible DAGs, the latest first."""
    mine = Subscription.objects.filter(user=user).select_related("dag", "site")
    dags = seen_or_all(user, visible_dags)
    if dags is not None:
        mine = mine.filter(Q(dag__isnull=True) | Q(Exists(dags.filter(pk=OuterRef("dag")))))
    return mine.order_by("dag_id", "rule", "site__name", "-pk")


def notices_about_frontend(user: User, key: str) -> QuerySet[Notice]:
    """Notices of the user about a frontend, latest first; `-` stands for the default one."""
    return own_notices(user).filter(subject_kind=SubjectKind.FRONTEND, subject_id=key)


def find_subscription(user: User, subscription_id: int) -> Subscription:
    """One subscription of the user. Raises NotFound."""
    found = own_subscriptions(user).filter(pk=subscription_id).first()
    if found is None:
        raise NotFound(f"You have no subscription {subscription_id}.")
    return found


def subscription_to_dag(user: User, dag_id: int) -> Subscription | None:
    """The user's subscription to one DAG, if there is one."""
    return Subscription.objects.filter(user=user, rule=Rule.DAG, dag=dag_id).first()


def with_told(dags: QuerySet[Dag], user: User) -> QuerySet[Dag]:
    """DAGs with `is_told`: whether the user has subscribed to each, in the same query."""
    mine = Subscription.objects.filter(user=user, rule=Rule.DAG, dag=OuterRef("pk"))
    return dags.annotate(is_told=Exists(mine))


def own_channels(user: User) -> QuerySet[Channel]:
    """Channels of the user, the oldest first."""
    return Channel.objects.filter(user=user).order_by("pk")


def find_channel(user: User, channel_id: int) -> Channel:
    """One channel of the user. Raises NotFound."""
    found = own_channels(user).filter(pk=channel_id).first()
    if found is None:
        raise NotFound(f"You have no channel {channel_id}.")
    return found


def latest_deliveries(user: User) -> QuerySet[Delivery]:
    """Latest deliveries to the user, failed ones included, latest first."""
    mine = Delivery.objects.filter(channel__user=user).select_related("channel")
    counted = mine.annotate(notice_count=Count("outgoing"))
    return counted.order_by("-created_at", "-pk")[:DELIVERIES_SHOWN]

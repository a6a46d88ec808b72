"""Annotations of history charts: downtimes, sites closed and opened, configuration changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import DateTimeField, F, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, Least

from wms.accounting.walls import walls_of
from wms.core.models import AuditEntry, User
from wms.sites.models import SiteEvent
from wms.sites.selectors import visible_downtimes, visible_sites

#: Most annotations of a range; older ones are left out.
MOST = 40
#: Events of a site: people closed or opened it, or it was configured.
_SITE_EVENTS = {
    "commission": "open", "ban": "banned", "drain": "draining", "unban": "open again",
    "create": "configured anew", "change": "configuration changed",
}  # fmt: skip
#: What concerns everybody in what is configured for all sites. Who did it, and the values, are in
#: the audit trail; nothing of accounts, tokens or single users is told here.
_CONFIGURED = ("node check", "matchmaking policy", "TaskQueue policy", "concurrency limit")
#: These may name groups and frontends.
_CONFIGURED_FOR_SOME = ("running limit", "pilot limit")
_COLUMNS = ("kind", "place", "at", "until", "words")


@dataclass(frozen=True, slots=True)
class Annotation:
    """An occurrence at a time, or from one time to another, to be drawn in charts.

    `kind` is downtime, state or configuration.
    """

    kind: str
    at: datetime
    until: datetime | None
    words: str


@dataclass(frozen=True, slots=True)
class Annotations:
    """Annotations of a range, oldest first; only the latest if there are too many."""

    shown: Sequence[Annotation]
    is_cut: bool


def annotations_between(
    user: User, *, since: datetime, until: datetime, site: str = ""
) -> Annotations:
    """Annotations between these times that the user may see. One query.

    With a site, those of the site and those of all sites.
    """
    downtimes = visible_downtimes(user).filter(start__lt=until, end__gt=since)
    events = SiteEvent.objects.filter(
        site__in=visible_sites(user), event__in=_SITE_EVENTS,
        created_at__gte=since, created_at__lt=until,
    )  # fmt: skip
    if site:
        downtimes, events = downtimes.filter(site__name=site), events.filter(site__name=site)
    rows = _of_downtimes(downtimes).union(
        _of_events(events), _of_configuration(user, since, until), all=True
    )
    found = list(rows.order_by("-at", "kind", "place", "words")[: MOST + 1])
    return Annotations([_annotation(*row) for row in reversed(found[:MOST])], len(found) > MOST)


def _of_downtimes(downtimes: QuerySet[Any]) -> QuerySet[Any]:
    # What was cancelled while it lasted has ended then; before it began, it never was.
    ended = Least("end", "cancelled_at")
    rows: QuerySet[Any] = (
        downtimes.exclude(cancelled_at__lte=F("start"))
        .order_by()
        .annotate(
            kind=Value("downtime", TextField()),
            place=Cast("site__name", TextField()),
            at=F("start"),
            until=ended,
            words=F("reason"),
        )
        .values_list(*_COLUMNS)
    )
    return rows


def _of_events(events: QuerySet[Any]) -> QuerySet[Any]:
    rows: QuerySet[Any] = (
        events.order_by()
        .annotate(
            kind=Cast("event", TextField()),
            place=Cast("site__name", TextField()),
            at=F("created_at"),
            until=Value(None, DateTimeField()),
            words=F("reason"),
        )
        .values_list(*_COLUMNS)
    )
    return rows


def _of_configuration(user: User, since: datetime, until: datetime) -> QuerySet[Any]:
    actions = Q()
    is_open = walls_of(user).is_open
    for thing in (*_CONFIGURED, *(_CONFIGURED_FOR_SOME if is_open else ())):
        actions |= Q(action__in=[f"{verb} {thing}" for verb in ("create", "change", "delete")])
    entries = AuditEntry.objects.filter(actions, created_at__gte=since, created_at__lt=until)
    rows: QuerySet[Any] = (
        entries.order_by()
        .annotate(
            kind=Cast("action", TextField()),
            place=Cast("target", TextField()),
            at=F("created_at"),
            until=Value(None, DateTimeField()),
            words=Value("", TextField()),
        )
        .values_list(*_COLUMNS)
    )
    return rows


def _annotation(
    kind: str, place: str, at: datetime, until: datetime | None, words: str
) -> Annotation:
    suffix = f": {words}" if words else ""
    if kind == "downtime":
        return Annotation("downtime", at, until, f"{place}: downtime{suffix}")
    if kind in _SITE_EVENTS:
        is_state = kind in ("commission", "ban", "drain", "unban")
        return Annotation(
            "state" if is_state else "configuration",
            at,
            None,
            f"{place}: {_SITE_EVENTS[kind]}{suffix}",
        )
    verb, _, thing = kind.partition(" ")
    done = {"create": "new", "change": "changed", "delete": "deleted"}[verb]
    return Annotation("configuration", at, None, f"{thing} {done}: {place}")

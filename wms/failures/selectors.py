"""Selectors of failure groups: counts, trends, and the failures in them.

Also the time windows, the groups that failures of jobs belong to, and the ids of what failed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum

from wms.accounting.walls import seen_by
from wms.core.errors import NotFound
from wms.core.models import User
from wms.dags.models import Dag
from wms.failures.counting import AT_SITES, Span, start_of
from wms.failures.failure_reports import FailureReport, read_events
from wms.failures.models import (
    Failure,
    FailureBin,
    FailureGroup,
    FailureGroupEvent,
    Kind,
)
from wms.failures.seen import (
    as_seen,
    counts_by_group,
    counts_by_hour,
    groups_within,
    rows_to_count,
    seen_failures,
)
from wms.jobs.lifecycle import FAILURES
from wms.jobs.models import JobEvent


class Window(StrEnum):
    """Time windows of failures."""

    HOUR = "1h"
    QUARTER = "6h"
    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"
    ALL = "all"

    @property
    def label(self) -> str:
        """Name of the window for people."""
        return _WINDOWS[self][0]

    @property
    def span(self) -> Span:
        """Span of the bins that make up the window."""
        return _WINDOWS[self][1]

    def since(self, now: datetime) -> datetime | None:
        """Start of the window, at a full hour or day (UTC); None for all time."""
        _, span, length = _WINDOWS[self]
        return None if length is None else start_of(span, now - length)


_WINDOWS: Mapping[Window, tuple[str, Span, timedelta | None]] = {
    Window.HOUR: ("last hour", Span.HOUR, timedelta(hours=1)),
    Window.QUARTER: ("last 6 hours", Span.HOUR, timedelta(hours=6)),
    Window.DAY: ("last 24 hours", Span.HOUR, timedelta(hours=24)),
    Window.WEEK: ("last 7 days", Span.DAY, timedelta(days=7)),
    Window.MONTH: ("last 30 days", Span.DAY, timedelta(days=30)),
    Window.ALL: ("ever", Span.DAY, None),
}


def visible_groups(user: User) -> QuerySet[FailureGroup]:
    """The groups that the user may see: with a failure of what is visible to the user."""
    return seen_by(user, FailureGroup.objects.all(), partial(groups_within, user))


def groups_of_jobs(user: User, job_ids: Collection[int]) -> dict[int, FailureGroup]:
    """The group of the latest failure of each of these jobs, as far as they are grouped."""
    event_ids = JobEvent.objects.filter(job_id__in=job_ids, event__in=FAILURES).values("pk")
    found = Failure.objects.filter(
        kind=Kind.JOB, event_id__in=event_ids, group__in=visible_groups(user)
    )
    latest = found.select_related("group").order_by("event_id")
    return {failure.subject_id: failure.group for failure in latest}


def find_group(user: User, group_id: int) -> FailureGroup:
    """One visible group. Raises NotFound."""
    groups = as_seen(user, visible_groups(user).filter(pk=group_id))
    if not groups:
        raise NotFound(f"There is no failure group {group_id}, or you may not see it.")
    return groups[0]


def groups_that_failed(
    user: User, window: Window, *, now: datetime, site: str = "", dag_id: int | None = None
) -> QuerySet[Any, Any]:
    """The ids of groups with failures in a window that the user may see, for a filter."""
    seen = rows_to_count(user, dag_id)
    if seen is None:
        return bins_in(window, now=now, site=site).values("group")
    return within(seen, window, now, site).values("group")


def within(
    failures: QuerySet[Failure], window: Window, now: datetime, site: str
) -> QuerySet[Failure]:
    since = window.since(now)
    chosen = failures if since is None else failures.filter(at__gte=since)
    return chosen.filter(site_name=site) if site else chosen


def bins_in(
    window: Window, *, now: datetime, site: str = "", at_sites: bool = False
) -> QuerySet[FailureBin]:
    """The bins of a window: those of one site if it is named, of all sites `at_sites`, or sums."""
    return FailureBin.objects.filter(**_of_window(window, now, site, at_sites=at_sites))


def _of_window(
    window: Window, now: datetime, site: str, *, at_sites: bool = False, prefix: str = ""
) -> dict[str, Any]:
    """Conditions of the bins in a window, as arguments of a filter."""
    since = window.since(now)
    span = AT_SITES[window.span] if site or at_sites else window.span
    chosen: dict[str, Any] = {f"{prefix}span": span}
    if since is not None:
        chosen[f"{prefix}start__gte"] = since
    if site:
        chosen[f"{prefix}site_name"] = site
    return chosen


def failures_in(
    user: User,
    window: Window,
    *,
    now: datetime,
    group_id: int,
    site: str = "",
    owner_id: int | None = None,
    dag_id: int | None = None,
) -> QuerySet[Failure]:
    """The visible failures of a group in a window, latest first: those that are counted.

    With an owner or a DAG only those of what is theirs.
    """
    seen = rows_to_count(user, dag_id)
    every = Failure.objects.all() if seen is None else seen
    chosen = within(every.filter(group=group_id), window, now, site)
    theirs = chosen if owner_id is None else chosen.filter(owner_id=owner_id)
    return theirs.order_by("-pk")


@dataclass(frozen=True, slots=True)
class CountedGroup:
    """A group with the number of its failures in a window."""

    group: FailureGroup
    count: int


def counted_groups(
    user: User,
    groups: QuerySet[FailureGroup],
    window: Window,
    *,
    now: datetime,
    site: str,
    limit: int,
    dag_id: int | None = None,
) -> list[CountedGroup]:
    """The groups with the most visible failures in the window, of a DAG if named, most first.

    One query, or three for one DAG and for who does not see all.
    """
    seen = rows_to_count(user, dag_id)
    if seen is not None:
        return _counted_as_seen(user, groups, within(seen, window, now, site), limit)
    chosen = groups.filter(**_of_window(window, now, site, prefix="bins__"))
    counted = (
        chosen.defer("sample")
        .annotate(count=Sum("bins__count"))
        .order_by("-count", "-last_seen", "-pk")
    )
    return [CountedGroup(group, int(group.count)) for group in counted[:limit]]


def _counted_as_seen(
    user: User, groups: QuerySet[FailureGroup], failures: QuerySet[Failure], limit: int
) -> list[CountedGroup]:
    counts = counts_by_group(failures)
    found = as_seen(user, groups.filter(pk__in=list(counts)).defer("sample"))
    hits = [CountedGroup(group, counts[group.pk]) for group in found]
    hits.sort(key=lambda hit: (hit.count, hit.group.last_seen, hit.group.pk), reverse=True)
    return hits[:limit]


def first_failures(dag_ids: Collection[int]) -> dict[int, datetime]:
    """Time of the first failure in each DAG, retried ones too; without those that had none.

    One query, which reads one failure of each from `failure_by_dag_and_time`.
    """
    if not dag_ids:
        return {}
    of_dag = Failure.objects.filter(dag_id=OuterRef("pk")).order_by("at").values("at")[:1]
    dags = Dag.objects.filter(pk__in=dag_ids).annotate(first_failure=Subquery(of_dag))
    rows = dags.filter(first_failure__isnull=False).values_list("pk", "first_failure")
    return dict(rows)


def causes_in_dag(dag_id: int, *, limit: int) -> list[CountedGroup]:
    """The groups with the most failures in a DAG so far, most first. One query.

    Who may see the DAG may see all of them.
    """
    groups = FailureGroup.objects.filter(failures__dag_id=dag_id).defer("sample")
    counted = groups.annotate(count=Count("failures")).order_by("-count", "-last_seen", "-pk")
    return [CountedGroup(group, int(group.count)) for group in counted[:limit]]


def own_groups(user: User, window: Window, *, now: datetime, limit: int) -> list[CountedGroup]:
    """The groups with the most failures of what is the user's own, in the window.

    One query, or three for who does not see all.
    """
    seen = seen_failures(user)
    if seen is not None:
        own = within(seen.filter(owner_id=user.pk), window, now, "")
        return _counted_as_seen(user, FailureGroup.objects.all(), own, limit)
    since = window.since(now)
    mine: dict[str, Any] = {"failures__owner_id": user.pk}
    mine |= {"failures__at__gte": since} if since is not None else {}
    groups = visible_groups(user).filter(**mine)
    counted = groups.annotate(count=Count("failures")).order_by("-count", "-pk")
    return [CountedGroup(group, int(group.count)) for group in counted[:limit]]


def subjects_of(kind: str, groups: Q) -> QuerySet[Failure, Any]:
    """The ids of the things of a kind that failures of some groups happened to, for a filter."""
    return Failure.objects.filter(groups, kind=kind).values("subject_id")


@dataclass(frozen=True, slots=True)
class Trend:
    """Number of failures in each of the last hours, the oldest first."""

    counts: Sequence[int]

    @property
    def most(self) -> int:
        """The most in an hour."""
        return max(self.counts, default=0)

    @property
    def direction(self) -> str:
        """Direction of the last six hours against the six before: rising, falling or steady."""
        recent, before = sum(self.counts[-6:]), sum(self.counts[-12:-6])
        if recent > 1.5 * before:
            return "rising"
        return "falling" if before > 1.5 * recent else "steady"


def trends_of(
    user: User,
    group_ids: Collection[int],
    *,
    now: datetime,
    site: str = "",
    dag_id: int | None = None,
    hours: int = 24,
) -> dict[int, Trend]:
    """Trends of the visible failures of these groups in the last hours. One query."""
    last = start_of(Span.HOUR, now)
    first = last - timedelta(hours=hours - 1)
    seen = rows_to_count(user, dag_id)
    rows: Iterable[tuple[int, datetime, int]]
    if seen is None:
        at_site = {"span": Span.SITE_HOUR, "site_name": site} if site else {"span": Span.HOUR}
        bins = FailureBin.objects.filter(group__in=group_ids, start__gte=first, **at_site)
        rows = bins.order_by().values_list("group_id", "start").annotate(Sum("count"))
    else:
        at_site = {"site_name": site} if site else {}
        rows = counts_by_hour(seen.filter(at__gte=first, **at_site), group_ids)
    found: dict[int, list[int]] = {pk: [0] * hours for pk in group_ids}
    for pk, start, count in rows:
        found[pk][min(hours - 1, int((start - first).total_seconds() // 3600))] += count
    return {pk: Trend(counts) for pk, counts in found.items()}


def events_of_group(group: FailureGroup) -> QuerySet[FailureGroupEvent]:
    """Events of a group, latest first."""
    return group.events.order_by("-pk")


def messages_of(failures: Sequence[Failure]) -> dict[int, FailureReport]:
    """Messages of these failures by their ids; those whose event is gone are absent."""
    by_kind: dict[Kind, dict[int, int]] = defaultdict(dict)
    for failure in failures:
        by_kind[Kind(failure.kind)][failure.event_id] = failure.pk
    return {
        pks[report.event_id]: report
        for kind, pks in by_kind.items()
        for report in read_events(kind, list(pks))
    }

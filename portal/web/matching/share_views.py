"""Shares page: submitters by priority, accounting groups with quotas, and limits.

Limits are those of concurrency with their use, those on submitted nodes over several DAGs, and
those on running jobs.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.web.lists.paging import numbered_page_of
from portal.web.shared.pages import may_configure, page
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Submitter
from wms.accounting.selectors import visible_groups, visible_limits, visible_submitters
from wms.core.models import User
from wms.dags.negotiation.usage import (
    DagCounts,
    QuotaUsage,
    dags_by_submitter,
    quota_usage,
    uses_by_limit,
)
from wms.dags.services.shared_limits import visible_shared_limits
from wms.jobs import limits as running_limits
from wms.taskqueues.task_queue_policy import task_queue_policy

_SUBMITTERS_SHOWN = 100
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class SubmitterLine:
    """A submitter with its DAGs."""

    submitter: Submitter
    dags: DagCounts

    @property
    def used_core_hours(self) -> float:
        """Core hours used in all."""
        return self.submitter.used_slot_s / _SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group with its quota in match slots, and the slots that it and its children hold."""

    group: AccountingGroup
    depth: int
    places: float
    held: float

    @property
    def percent(self) -> float:
        """Quota in percent, if it is a fraction."""
        return 100 * self.group.quota


@dataclass(frozen=True, slots=True)
class LimitLine:
    """A concurrency limit, with the use under each name that it covers."""

    limit: ConcurrencyLimit
    uses: list[tuple[str, float]]


@require_safe
@page
def shares(request: HttpRequest) -> HttpResponse:
    """Shares page: submitters in the order they are served, groups, limits."""
    now = timezone.now()
    places = quota_usage(now)
    ranked = visible_submitters(request.user)
    stretch = numbered_page_of(ranked, request.GET, by="place", page_size=_SUBMITTERS_SHOWN)
    counts = dags_by_submitter()
    nothing = DagCounts()
    context = {
        "policy": task_queue_policy(),
        "shared_limits": list(visible_shared_limits(request.user).order_by("pk")),
        "running_limits": list(running_limits.visible_limits(request.user)),
        "now": now,
        "places": places,
        "stretch": stretch,
        "submitters": [
            SubmitterLine(row, counts.get((row.user_id, row.group_id), nothing))
            for row in stretch.rows
        ],
        "groups": _groups(request.user, places),
        "limits": _limits(request.user),
        "may_configure": may_configure(request),
    }
    return render(request, "web/shares.html", context)


def _groups(user: User, places: QuotaUsage) -> list[GroupLine]:
    return [
        GroupLine(
            group,
            group.name.count("."),
            places.quotas.get(group.name, 0.0),
            places.held.get(group.name, 0.0),
        )
        for group in sorted(visible_groups(user), key=_family)
    ]


def _family(group: AccountingGroup) -> list[str]:
    """Sort key that puts groups after their parents; the database's collation ignores dots."""
    return group.name.split(".")


def _limits(user: User) -> list[LimitLine]:
    uses = uses_by_limit(user)
    return [
        LimitLine(limit, list(uses.get(limit.name, {limit.name: 0.0}).items()))
        for limit in visible_limits(user)
    ]

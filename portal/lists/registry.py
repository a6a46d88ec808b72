"""Every list of the portal, described once: for its page, its export, saved filters, bulk actions.

`find_list("jobs").chosen(parameters, user)` are the rows that a stored filter means now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import JSONObject
from django.utils import timezone

from portal.lists import columns as of
from portal.lists.audit_filters import AuditFilter
from portal.lists.base_filter import ListFilter, checked, normalised
from portal.lists.bulk_filters import BulkFilter
from portal.lists.columns import Column, JobLine, RequestLine, Tried
from portal.lists.downtime_filters import DowntimeFilter
from portal.lists.filters import (
    DagFilter,
    PilotFilter,
    PlacementFilter,
    SiteFilter,
    TaskQueueFilter,
)
from portal.lists.job_filter import JobFilter
from portal.shared.site_lines import in_order, site_lines
from wms.bulk.selectors import visible_operations
from wms.bulk.states import BulkState
from wms.core.audit import visible_entries
from wms.core.errors import NotFound
from wms.core.models import AuditEntry, AuditKind, User
from wms.dags.reading.dag_jobs import dag_of_outer_job
from wms.dags.reading.node_selectors import nodes_of_requests
from wms.dags.reading.selectors import listed_dags, nodes_of_jobs
from wms.dags.states import DagState
from wms.jobs.models import Attempt, Job
from wms.jobs.selectors import listed_jobs
from wms.jobs.states import JobState
from wms.pilots.selectors import listed_pilots
from wms.pilots.states import PilotState
from wms.placement.models import PlacementRequest
from wms.placement.selectors import listed_requests
from wms.placement.states import RequestState
from wms.sites.calendar import DowntimeState, listed_downtimes
from wms.sites.selectors import visible_sites
from wms.taskqueues.listing import Order as TaskQueueOrder
from wms.taskqueues.listing import task_queue_page, visible_task_queues

#: So many rows are looked up at once by who walks through a whole list.
CHUNK = 1000


@dataclass(frozen=True, slots=True)
class GroupBy:
    """An attribute of the rows that is counted by value; `name` is that of its filter."""

    name: str
    label: str
    expression: Any


@dataclass(frozen=True, slots=True)
class ListOf:
    """One list: its filters, rows and columns. `search` is the filter of its search field."""

    name: str
    title: str
    noun: str
    filter_class: type[ListFilter]
    rows: Callable[[User], QuerySet[Any]]
    columns: Sequence[Column]
    search: str
    states: Sequence[str] = ()
    state_filter: str = "state"
    groups: Sequence[GroupBy] = ()
    lines: Callable[[Sequence[Any]], Sequence[Any]] = list
    walk: Callable[[ListOf, ListFilter, User], Iterator[Sequence[Any]]] = field(
        default=lambda kind, asked, user: kind.in_order(asked)
    )

    def asked(
        self, parameters: Mapping[str, Any], user: User, *, now: datetime | None = None
    ) -> ListFilter:
        """The filter over what the user may see."""
        return self.filter_class(parameters, queryset=self.rows(user), now=now)

    def normalised(self, parameters: Mapping[str, Any]) -> dict[str, list[str]]:
        """The filters among parameters, as a value to be stored. Raises InvalidInput."""
        return normalised(self.filter_class, parameters)

    def chosen(
        self, parameters: Mapping[str, Any], user: User, *, now: datetime | None = None
    ) -> QuerySet[Any]:
        """The rows that the filter means, of what the user may see. Raises InvalidInput.

        Relative times are seen from `now`.
        """
        return self.asked(self.normalised(parameters), user, now=now).qs

    def column_names(self) -> list[str]:
        """The names of all columns, in their order."""
        return [column.name for column in self.columns]

    def shown_columns(self, names: Sequence[str], asked: ListFilter | None = None) -> list[Column]:
        """The columns of these names with those that are always shown; by default the usual.

        That by which the list is sorted is shown as well.
        """
        sorted_by = asked.order.sort.columns[:1] if asked is not None and asked.is_sorted else ()
        return [
            column
            for column in self.columns
            if column.is_fixed
            or column.name in sorted_by
            or (column.name in names if names else column.is_usual)
        ]

    def kept(self, parameters: Mapping[str, Any]) -> dict[str, list[str]]:
        """The filters among parameters and their order, to be kept of a list. Raises InvalidInput.

        A value that `normalised` gives, with `sort` beside the filters.
        """
        return checked(self.filter_class, parameters).kept()

    def in_order(self, asked: ListFilter) -> Iterator[Sequence[Any]]:
        """All lines that are sorted, so many at a time: none is in memory longer than needed."""
        rows = asked.some(None, CHUNK)
        yield self.lines(rows)
        while len(rows) == CHUNK:
            rows = asked.some(asked.order.border_of(rows[-1]), CHUNK)
            yield self.lines(rows)


def _jobs(user: User) -> QuerySet[Job]:
    dags = dag_of_outer_job().values("name")
    # With the rows, and not by a question of its own.
    latest = Attempt.objects.filter(job=OuterRef("pk"), number=OuterRef("attempt_number"))
    told = latest.values(told=JSONObject(host="host", pilot_id="pilot_id"))[:1]
    return listed_jobs(user).annotate(dag_name=Subquery(dags), latest=Subquery(told))


def _job_lines(jobs: Sequence[Job]) -> list[JobLine]:
    nodes = nodes_of_jobs(jobs)
    return [JobLine(job, nodes.get(job.pk), _tried(job)) for job in jobs]


def _tried(job: Any) -> Tried | None:
    return Tried(job.site_name, **job.latest) if job.latest else None


def _request_lines(requests: Sequence[PlacementRequest]) -> list[RequestLine]:
    nodes = nodes_of_requests([request.pk for request in requests])
    return [RequestLine(request, nodes.get(request.pk)) for request in requests]


def _all_sites(kind: ListOf, asked: ListFilter, user: User) -> Iterator[Sequence[Any]]:
    wanted = set(asked.qs.values_list("pk", flat=True))
    lines = in_order(site_lines(user, now=timezone.now()), asked.order)
    yield [line for line in lines if line.site.pk in wanted]


def _all_task_queues(kind: ListOf, asked: TaskQueueFilter, user: User) -> Iterator[Sequence[Any]]:
    after, order = None, TaskQueueOrder(asked.order.text)
    while True:
        found = task_queue_page(asked.qs, order=order, after=after, limit=CHUNK)
        yield found.lines
        if found.following is None:
            return
        after = found.following


def _entries(user: User) -> QuerySet[AuditEntry]:
    """Lists count by state; what an entry is about stands for one."""
    return visible_entries(user).annotate(state=F("object_kind"))


_OWNER = GroupBy("owner", "Owner", F("owner__username"))
_REASON = GroupBy("reason", "Reason", F("state_reason"))

LISTS = {
    each.name: each
    for each in (
        ListOf(
            name="dags",
            title="DAGs",
            noun="DAG",
            filter_class=DagFilter,
            rows=listed_dags,
            columns=of.DAG_COLUMNS,
            search="name",
            states=DagState.values,
            groups=(_OWNER, GroupBy("site", "Site", F("site__name")), _REASON),
        ),
        ListOf(
            name="jobs",
            title="Jobs",
            noun="job",
            filter_class=JobFilter,
            rows=_jobs,
            columns=of.JOB_COLUMNS,
            search="name",
            states=JobState.values,
            groups=(_OWNER, GroupBy("site", "Site", F("site_name")), _REASON),
            lines=_job_lines,
        ),
        ListOf(
            name="pilots",
            title="Pilots",
            noun="pilot",
            filter_class=PilotFilter,
            rows=listed_pilots,
            columns=of.PILOT_COLUMNS,
            search="host",
            states=PilotState.values,
            groups=(
                GroupBy("site", "Site", F("queue__site__name")),
                GroupBy("queue", "Queue", F("queue__name")),
                _REASON,
            ),
        ),
        ListOf(
            name="placements",
            title="Placements",
            noun="request",
            filter_class=PlacementFilter,
            rows=listed_requests,
            columns=of.PLACEMENT_COLUMNS,
            search="url",
            states=RequestState.values,
            groups=(_OWNER, _REASON),
            lines=_request_lines,
        ),
        ListOf(
            name="sites",
            title="Sites",
            noun="site",
            filter_class=SiteFilter,
            rows=visible_sites,
            columns=of.SITE_COLUMNS,
            search="name",
            state_filter="standing",
            walk=_all_sites,
        ),
        ListOf(
            name="task-queues",
            title="TaskQueues",
            noun="TaskQueue",
            filter_class=TaskQueueFilter,
            rows=visible_task_queues,
            columns=of.TASK_QUEUE_COLUMNS,
            search="site",
            state_filter="cpu_time_s",
            walk=_all_task_queues,
        ),
        ListOf(
            name="downtimes",
            title="Downtimes",
            noun="downtime",
            filter_class=DowntimeFilter,
            rows=listed_downtimes,
            columns=of.DOWNTIME_COLUMNS,
            search="reason",
            states=DowntimeState.values,
            groups=(
                GroupBy("site", "Site", F("site__name")),
                GroupBy("author", "Entered by", F("author")),
            ),
        ),
        ListOf(
            name="audit",
            title="Audit",
            noun="entry",
            filter_class=AuditFilter,
            rows=_entries,
            columns=of.AUDIT_COLUMNS,
            search="reason",
            states=AuditKind.values,
            state_filter="kind",
            groups=(
                GroupBy("action", "Action", F("action")),
                GroupBy("actor", "Actor", F("actor")),
            ),
        ),
        ListOf(
            name="bulk",
            title="Bulk operations",
            noun="operation",
            filter_class=BulkFilter,
            rows=visible_operations,
            columns=of.BULK_COLUMNS,
            search="reason",
            states=BulkState.values,
            groups=(
                GroupBy("action", "Action", F("action")),
                GroupBy("list", "Objects", F("list_name")),
                GroupBy("owner", "By", F("owner__username")),
            ),
        ),
    )
}


def find_list(name: str) -> ListOf:
    """The list of this name. Raises NotFound."""
    if name not in LISTS:
        raise NotFound(f"There is no list {name!r}; there are {', '.join(LISTS)}.")
    return LISTS[name]


def apply_filter(
    name: str, parameters: Mapping[str, Any], user: User, *, now: datetime | None = None
) -> QuerySet[Any]:
    """The rows of a list that a stored filter means, of what the user may see."""
    return find_list(name).chosen(parameters, user, now=now)

"""Registry of all lists of the portal: filter, rows and columns for page, export and bulk actions.

`find_list("jobs").chosen(parameters, user)` are the rows that a stored filter selects now. Also the
attributes whose values a page counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Case, F, OuterRef, Q, QuerySet, Subquery, TextField, When
from django.db.models.functions import Cast, JSONObject
from django.utils import timezone

from portal.lists import columns as of
from portal.lists.archive_filter import ArchiveFilter
from portal.lists.audit_filters import AuditFilter
from portal.lists.base_filter import ListFilter
from portal.lists.bulk_filters import BulkFilter
from portal.lists.cluster_filter import ClusterFilter
from portal.lists.columns import JobLine, LatestAttempt, RequestLine
from portal.lists.downtime_filters import DowntimeFilter
from portal.lists.filters import (
    DagFilter,
    PilotFilter,
    PlacementFilter,
    ScheduleFilter,
    SiteFilter,
    TaskQueueFilter,
)
from portal.lists.job_filter import JobFilter
from portal.lists.list_spec import CHUNK, GroupBy, ListSpec
from portal.lists.remark_filters import RemarkFilter
from portal.lists.trial_filter import TrialFilter
from portal.shared.site_lines import in_order, site_lines
from wms.archives.selectors import listed_archives
from wms.bulk.selectors import visible_operations
from wms.bulk.states import BulkState
from wms.core.audit import visible_entries
from wms.core.errors import NotFound
from wms.core.models import AuditEntry, AuditKind, User
from wms.dags.reading.dag_jobs import dag_of_outer_job
from wms.dags.reading.node_selectors import nodes_of_requests
from wms.dags.reading.selectors import listed_dags, nodes_of_jobs
from wms.dags.states import DAG_TERMINAL, DagState
from wms.dags.trials.selectors import listed_trials
from wms.dags.trials.states import TrialState
from wms.jobs.clusters.selectors import listed_clusters
from wms.jobs.clusters.states import ClusterState
from wms.jobs.models import Attempt, Job
from wms.jobs.selectors import listed_jobs
from wms.jobs.states import JobState
from wms.pilots.selectors import listed_pilots
from wms.pilots.states import PilotState
from wms.placement.models import PlacementRequest
from wms.placement.selectors import listed_requests
from wms.placement.states import RequestState
from wms.remarks.models import Remark
from wms.remarks.selectors import visible_remarks
from wms.remarks.states import RemarkEvent
from wms.schedules.selectors import listed_schedules
from wms.schedules.states import ScheduleState
from wms.sites.downtimes.selectors import DowntimeState, listed_downtimes
from wms.sites.selectors import visible_sites
from wms.taskqueues.listing import Order as TaskQueueOrder
from wms.taskqueues.listing import task_queue_page, visible_task_queues


def _jobs(user: User) -> QuerySet[Job]:
    dags = dag_of_outer_job().values("name")
    # With the rows, and not by a question of its own.
    latest = Attempt.objects.filter(job=OuterRef("pk"), number=OuterRef("attempt_number"))
    facts = JSONObject(host="host", pilot_id="pilot_id", exit_code="exit_code", signal="signal")
    told = latest.values(facts=facts)[:1]
    return listed_jobs(user).annotate(dag_name=Subquery(dags), latest=Subquery(told))


def _job_lines(jobs: Sequence[Job]) -> list[JobLine]:
    nodes = nodes_of_jobs(jobs)
    return [JobLine(job, nodes.get(job.pk), _tried(job)) for job in jobs]


def _tried(job: Any) -> LatestAttempt | None:
    return LatestAttempt(job.site_name, **job.latest) if job.latest else None


def _request_lines(requests: Sequence[PlacementRequest]) -> list[RequestLine]:
    nodes = nodes_of_requests([request.pk for request in requests])
    return [RequestLine(request, nodes.get(request.pk)) for request in requests]


def _all_sites(kind: ListSpec, list_filter: ListFilter, user: User) -> Iterator[Sequence[Any]]:
    wanted = set(list_filter.qs.values_list("pk", flat=True))
    lines = in_order(site_lines(user, now=timezone.now()), list_filter.order)
    yield [line for line in lines if line.site.pk in wanted]


def _all_task_queues(
    kind: ListSpec, list_filter: TaskQueueFilter, user: User
) -> Iterator[Sequence[Any]]:
    after, order = None, TaskQueueOrder(list_filter.order.text)
    while True:
        found = task_queue_page(list_filter.qs, order=order, after=after, limit=CHUNK)
        yield found.lines
        if found.following is None:
            return
        after = found.following


def _entries(user: User) -> QuerySet[AuditEntry]:
    """Audit entries; the list counts by kind of object, which takes the place of a state."""
    return visible_entries(user).annotate(state=F("object_kind"))


def _remarks(user: User) -> QuerySet[Remark]:
    """Entries of the shift log; the list counts by what they say, in place of a state."""
    return visible_remarks(user).annotate(state=F("event"))


def _end_of_latest(column: str) -> Case:
    """End of the latest attempt of jobs that are not done; null for others.

    Jobs that are done or have not run are left out, whose attempts need not be looked up.
    """
    latest = Attempt.objects.filter(
        job=OuterRef("pk"), number=OuterRef("attempt_number"), **{f"{column}__gt": 0}
    )
    has_ended_ill = ~Q(state__in=(JobState.DONE, JobState.RUNNING)) & Q(attempt_number__gt=0)
    text = Cast(column, TextField())
    return Case(When(has_ended_ill, then=Subquery(latest.values(text=text)[:1])))


_OWNER = GroupBy("owner", "Owner", F("owner__username"))
_REASON = GroupBy("reason", "Reason", F("state_reason"))

LISTS = {
    each.name: each
    for each in (
        ListSpec(
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
        ListSpec(
            name="jobs",
            title="Jobs",
            noun="job",
            filter_class=JobFilter,
            rows=_jobs,
            columns=of.JOB_COLUMNS,
            search="name",
            states=JobState.values,
            groups=(
                _OWNER,
                GroupBy("site", "Site", F("site_name")),
                GroupBy("exit", "Exit code", _end_of_latest("exit_code")),
                GroupBy("signal", "Signal", _end_of_latest("signal")),
                _REASON,
            ),
            lines=_job_lines,
        ),
        ListSpec(
            name="clusters",
            title="Clusters",
            noun="cluster",
            filter_class=ClusterFilter,
            rows=listed_clusters,
            columns=of.CLUSTER_COLUMNS,
            search="name",
            states=ClusterState.values,
            groups=(_OWNER, GroupBy("group", "Group", F("accounting_group__name")), _REASON),
        ),
        ListSpec(
            name="schedules",
            title="Schedules",
            noun="schedule",
            filter_class=ScheduleFilter,
            rows=listed_schedules,
            columns=of.SCHEDULE_COLUMNS,
            search="name",
            states=ScheduleState.values,
            groups=(_OWNER, GroupBy("outcome", "Latest", F("last_outcome")), _REASON),
        ),
        ListSpec(
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
        ListSpec(
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
        ListSpec(
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
        ListSpec(
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
        ListSpec(
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
        ListSpec(
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
        ListSpec(
            name="remarks",
            title="Shift log",
            noun="entry",
            filter_class=RemarkFilter,
            rows=_remarks,
            columns=of.REMARK_COLUMNS,
            search="text",
            states=RemarkEvent.values,
            state_filter="event",
            groups=(
                GroupBy("author", "Author", F("author__username")),
                GroupBy("kind", "About", F("subject_kind")),
            ),
        ),
        ListSpec(
            name="trials",
            title="Trials",
            noun="trial",
            filter_class=TrialFilter,
            rows=listed_trials,
            columns=of.TRIAL_COLUMNS,
            search="file",
            states=TrialState.values,
            groups=(
                GroupBy("kind", "What", F("kind")),
                GroupBy("owner", "Owner", F("owner__username")),
            ),
        ),
        ListSpec(
            name="archives",
            title="Archives",
            noun="archive",
            filter_class=ArchiveFilter,
            rows=listed_archives,
            columns=of.ARCHIVE_COLUMNS,
            search="name",
            states=[state for state in DagState.values if state in DAG_TERMINAL],
            groups=(
                GroupBy("owner", "Owner", F("owner_name")),
                GroupBy("installation", "Written by", F("installation")),
            ),
        ),
        ListSpec(
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


def find_list(name: str) -> ListSpec:
    """The list of this name. Raises NotFound."""
    if name not in LISTS:
        raise NotFound(f"There is no list {name!r}; there are {', '.join(LISTS)}.")
    return LISTS[name]


def apply_filter(
    name: str, parameters: Mapping[str, Any], user: User, *, now: datetime | None = None
) -> QuerySet[Any]:
    """Rows that a stored filter selects among those the user may see."""
    return find_list(name).chosen(parameters, user, now=now)

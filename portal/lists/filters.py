"""Filters of DAGs, nodes, script runs, placements, TaskQueues, pilots and sites.

Each is used by its page, the API, the dashboard and saved filters. docs/reference/filters.md
describes the syntax, `portal.lists.filter_fields` parses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Q, QuerySet

from portal.lists.base_filter import ListFilter, is_wanted
from portal.lists.filter_fields import (
    Chosen,
    HiddenValues,
    Moments,
    Numbers,
    Owners,
    Texts,
    Words,
    YesNo,
    hidden_numbers,
)
from portal.lists.job_filter import TopicFilter
from portal.lists.label_filter import Labels
from portal.lists.remark_filters import Acknowledged, Assigned
from portal.lists.sorting import Sorting, by_number, by_text, by_time, newest
from wms.dags.lifecycle import DATA_TOPIC
from wms.dags.models import Dag, Node, ScriptRun
from wms.dags.reading.selectors import needing_attention
from wms.dags.states import DagState, NodeKind, NodeState, ScriptKind, ScriptState
from wms.pilots.models import Pilot
from wms.pilots.states import PilotState
from wms.placement.catalogue.models import LogicalFile
from wms.placement.models import PlacementRequest
from wms.placement.states import RequestKind, RequestState
from wms.remarks.states import SubjectKind
from wms.schedules.models import Schedule
from wms.schedules.states import RunOutcome, ScheduleState
from wms.sites.models import Site
from wms.sites.standing import STANDING_WORDS, statuses_of_sites
from wms.sites.states import SiteState
from wms.taskqueues.models import TaskQueue

#: What numbers of things are called in their order.
_MOST = {"rising": "fewest first", "falling": "most first"}


class DagFilter(ListFilter):
    """DAGs by state, owner, group, label, site, name, priority, size and time."""

    name = Texts(label="Name contains")
    state = Words(choices=DagState.choices, label="State")
    owner = Owners(field_name="owner_id", label="Owner")
    group = Words(field_name="accounting_group__name", label="Group")
    label = Labels(label="Label")
    site = Words(field_name="site__name", label="Site")
    reason = Texts(field_name="state_reason", label="Reason contains")
    priority = Numbers(label="Priority")
    created = Moments(field_name="created_at", label="Submitted")
    since = Moments(field_name="state_since", label="In its state since")
    ended = Moments(field_name="ended_at", label="Ended")
    nodes = Numbers(field_name="node_count", label="Nodes")
    failed = Numbers(field_name="failed_count", label="Failed nodes")
    id = Numbers(smallest=1, label="Number")
    attention = YesNo(method="filter_attention", label="Needs attention", widget=HiddenValues)
    acknowledged = Acknowledged(SubjectKind.DAG)
    assigned = Assigned(SubjectKind.DAG)
    outer = hidden_numbers("parent_node__dag", "Inside of DAG")
    root = hidden_numbers("root", "In the tree of DAG")
    previous_run = hidden_numbers("previous_run", "Runs that went on from DAG")
    sort = Sorting(
        newest("Submitted", "created"),
        by_text("name", "Name", "name", "dag"),
        by_number("failed", "Failed nodes", "failed_count", "progress", **_MOST),
        by_number("nodes", "Nodes", "node_count", "", **_MOST),
        by_time("since", "In its state since", "state_since"),
        by_time("ended", "Ended", "ended_at", is_nullable=True),
    )

    class Meta:
        model = Dag
        fields: Sequence[str] = ()

    def filter_attention(self, queryset: QuerySet[Dag], name: str, value: bool) -> QuerySet[Dag]:
        """DAGs that need a person's attention now; `false` leaves all."""
        return needing_attention(queryset, now=self.now) if value else queryset


class ScheduleFilter(ListFilter):
    """Schedules by state, latest outcome, owner, group, label, name and time."""

    name = Texts(label="Name contains")
    state = Words(choices=ScheduleState.choices, label="State")
    outcome = Words(field_name="last_outcome", choices=RunOutcome.choices, label="Latest outcome")
    owner = Owners(field_name="owner_id", label="Owner")
    group = Words(field_name="accounting_group__name", label="Group")
    label = Labels(label="Label")
    reason = Texts(field_name="state_reason", label="Reason contains")
    zone = Words(field_name="time_zone", label="Time zone")
    next = Moments(field_name="next_at", label="Next time")
    created = Moments(field_name="created_at", label="Made")
    since = Moments(field_name="state_since", label="In its state since")
    id = Numbers(smallest=1, label="Number")
    sort = Sorting(
        newest("Made", "created"),
        by_text("name", "Name", "name", "schedule"),
        by_time("next", "Next time", "next_at", falls_first=False, is_nullable=True),
        by_time("since", "In its state since", "state_since"),
    )

    class Meta:
        model = Schedule
        fields: Sequence[str] = ()


class NodeFilter(ListFilter):
    """Nodes of a DAG by state, kind, name and category."""

    name = Texts(label="Name contains")
    state = Words(choices=NodeState.choices, label="State")
    kind = Words(choices=NodeKind.choices, label="Kind")
    category = Words(label="Category")
    retries = Numbers(field_name="retry_number", label="Retries")
    since = Moments(field_name="state_since", label="In its state since")
    reason = Texts(field_name="state_reason", label="Reason contains")

    class Meta:
        model = Node
        fields: Sequence[str] = ()


class ScriptRunFilter(ListFilter):
    """Runs of scripts by state, kind and node."""

    state = Words(choices=ScriptState.choices, label="State")
    kind = Words(choices=ScriptKind.choices, label="Kind")
    node = hidden_numbers("node", "Node")

    class Meta:
        model = ScriptRun
        fields: Sequence[str] = ()


class PlacementFilter(ListFilter):
    """Placement requests by state, kind, owner, DAG, address and time."""

    url = Texts(method="filter_url", label="Address contains")
    state = Words(choices=RequestState.choices, label="State")
    kind = Words(choices=RequestKind.choices, label="Kind")
    owner = Owners(field_name="owner_id", label="Owner")
    dag = TopicFilter(DATA_TOPIC)
    reason = Texts(field_name="state_reason", label="Reason contains")
    created = Moments(field_name="created_at", label="Made")
    since = Moments(field_name="state_since", label="In its state since")
    id = Numbers(smallest=1, label="Number")
    sort = Sorting(
        newest("Made", "created"),
        by_time("since", "In its state since", "state_since"),
        by_number("attempt", "Attempts", "attempt_number", **_MOST),
    )

    class Meta:
        model = PlacementRequest
        fields: Sequence[str] = ()

    def filter_url(
        self, queryset: QuerySet[PlacementRequest], name: str, value: Chosen
    ) -> QuerySet[PlacementRequest]:
        """Requests whose source or destination contains the text."""
        if value.included:
            queryset = queryset.filter(_at_address(value.included))
        return queryset.exclude(_at_address(value.excluded)) if value.excluded else queryset


class LogicalFileFilter(ListFilter):
    """Logical files by name, owner and time."""

    name = Texts(label="Name contains")
    owner = Owners(field_name="owner_id", label="Owner")
    created = Moments(field_name="created_at", label="Registered")
    id = Numbers(smallest=1, label="Number")
    sort = Sorting(newest("Registered", "created"))

    class Meta:
        model = LogicalFile
        fields: Sequence[str] = ()


def _at_address(parts: Iterable[str]) -> Q:
    whole = Q()
    for part in parts:
        whole |= Q(source_url__icontains=part) | Q(destination_url__icontains=part)
    return whole


class TaskQueueFilter(ListFilter):
    """TaskQueues by whose jobs they are and what these need.

    `site` and `platform` are where the jobs may run: those that name none are found as well.
    """

    owner = Owners(field_name="owner_id", label="Owner")
    group = Words(field_name="owner_group", label="Group")
    site = Words(method="filter_site", label="May run at site")
    platform = Words(method="filter_platform", label="Platform")
    tag = Words(method="filter_tag", label="Needs the tag")
    job_type = Words(label="Job type")
    setup = Words(label="Setup")
    created = Moments(field_name="created_at", label="Made")
    cpu_time_s = Numbers(smallest=1, largest=2**31 - 1, label="CPU segment", widget=HiddenValues)
    sort = Sorting(
        by_number("waiting", "Waiting jobs", "", **_MOST),
        by_time("oldest", "Oldest job", "", falls_first=False),
        by_number("priority", "Priority", "", "priority", "share"),
    )

    class Meta:
        model = TaskQueue
        fields: Sequence[str] = ()

    @property
    def is_walked(self) -> bool:
        """True: TaskQueues are sorted by counts over all of them."""
        return True

    def filter_site(
        self, queryset: QuerySet[TaskQueue], name: str, value: Chosen
    ) -> QuerySet[TaskQueue]:
        """TaskQueues whose jobs name the site or none, and do not ban it."""
        return _either(queryset, value, lambda site: (
            (Q(sites=[]) | Q(sites__contains=[site])) & ~Q(banned_sites__contains=[site])
        ))  # fmt: skip

    def filter_platform(
        self, queryset: QuerySet[TaskQueue], name: str, value: Chosen
    ) -> QuerySet[TaskQueue]:
        """TaskQueues whose jobs name the platform or none."""
        return _either(queryset, value, lambda platform: (
            Q(platforms=[]) | Q(platforms__contains=[platform])
        ))  # fmt: skip

    def filter_tag(
        self, queryset: QuerySet[TaskQueue], name: str, value: Chosen
    ) -> QuerySet[TaskQueue]:
        """TaskQueues whose jobs need the tag."""
        return _either(queryset, value, lambda tag: Q(tags__contains=[tag]))


def _either(queryset: QuerySet[Any], value: Chosen, condition: Any) -> QuerySet[Any]:
    """Rows whose condition is true of any included value, and of no excluded one."""
    if value.included:
        whole = Q()
        for each in value.included:
            whole |= condition(each)
        queryset = queryset.filter(whole)
    for each in value.excluded:
        queryset = queryset.exclude(condition(each))
    return queryset


class PilotFilter(ListFilter):
    """Pilots by state, site, queue, node, reason and time."""

    host = Texts(field_name="node__hostname", label="Node contains")
    state = Words(choices=PilotState.choices, label="State")
    site = Words(field_name="queue__site__name", label="Site")
    queue = Words(field_name="queue__name", label="Queue")
    reason = Texts(field_name="state_reason", label="Reason contains")
    created = Moments(field_name="created_at", label="Made")
    since = Moments(field_name="state_since", label="In its state since")
    heartbeat = Moments(field_name="heartbeat_at", label="Last heartbeat")
    ended = Moments(field_name="ended_at", label="Ended")
    id = Numbers(smallest=1, label="Number")
    sort = Sorting(
        newest("Made", "created"),
        by_time("since", "In its state since", "state_since"),
        by_time("heartbeat", "Last heartbeat", "heartbeat_at", is_nullable=True),
        by_time("ended", "Ended", "ended_at", is_nullable=True),
        by_text("queue", "Site", "queue__site__name"),
    )

    class Meta:
        model = Pilot
        fields: Sequence[str] = ()


#: Two of them are called otherwise on badges.
_STANDINGS = [
    (word, {"enabled": "open", "late": "no ad"}.get(word, word)) for word in STANDING_WORDS
]


class SiteFilter(ListFilter):
    """Sites by name, by what people decided, and by how they stand."""

    name = Texts(label="Name contains")
    standing = Words(method="filter_standing", choices=_STANDINGS, label="State")
    state = Words(choices=SiteState.choices, label="Decided by a person", widget=HiddenValues)
    is_enabled = YesNo(label="In use", widget=HiddenValues)
    acknowledged = Acknowledged(SubjectKind.SITE)
    assigned = Assigned(SubjectKind.SITE)
    sort = Sorting(
        by_text("name", "Name", "name", "site"),
        by_number("bound", "Bound", "matched", **_MOST),
        by_number("running", "Pilots running", "running_pilots", **_MOST),
        by_number("queued", "Pilots waiting", "queued_pilots", **_MOST),
        by_number("stalled", "Pilots stalled", "stalled_pilots", **_MOST),
    )

    class Meta:
        model = Site
        fields: Sequence[str] = ()

    @property
    def is_walked(self) -> bool:
        """True: sites are few, so all are sorted."""
        return True

    def filter_standing(self, queryset: QuerySet[Site], name: str, value: Chosen) -> QuerySet[Site]:
        """Sites with this standing at this moment. Three queries."""
        found = [pk for pk, word in statuses_of_sites(self.now).items() if is_wanted(word, value)]
        return queryset.filter(pk__in=found)


class NamedSiteFilter(SiteFilter):
    """The same without the current load, for reading sites one after another."""

    sort = Sorting(by_text("name", "Name", "name", "site"))

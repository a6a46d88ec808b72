"""The filters of lists: each is used by its page, by the API and by the dashboard's figures."""

from __future__ import annotations

import django_filters as filters
from django import forms
from django.db.models import Q, QuerySet
from django.utils import timezone

from wms.dags.lifecycle import DATA_TOPIC, JOB_TOPIC
from wms.dags.models import Dag, Node, ScriptRun
from wms.dags.selectors import needing_attention
from wms.dags.states import DagState, NodeKind, NodeState, ScriptKind, ScriptState
from wms.jobs.models import Job
from wms.jobs.states import JobState
from wms.pilots.models import Pilot
from wms.pilots.states import PilotState
from wms.placement.models import PlacementRequest
from wms.placement.states import RequestState
from wms.sites.models import Site
from wms.sites.states import SiteState
from wms.taskqueues.listing import Order
from wms.taskqueues.models import TaskQueue

MAX_ID = 2**63 - 1


def hidden_id(field_name: str, label: str) -> filters.NumberFilter:
    """A filter by the id of something else: for links, not for people to fill in."""
    return filters.NumberFilter(
        field_name=field_name,
        min_value=1,
        max_value=MAX_ID,
        decimal_places=0,
        label=label,
        widget=forms.HiddenInput,
    )


class DagFilter(filters.FilterSet):
    """DAGs by state, owner, site and name."""

    state = filters.MultipleChoiceFilter(choices=DagState.choices, distinct=False)
    owner = filters.CharFilter(field_name="owner__username", label="Owner")
    site = filters.CharFilter(field_name="site__name", label="Site")
    name = filters.CharFilter(lookup_expr="icontains", label="Name contains")
    attention = filters.BooleanFilter(method="filter_attention", label="Needs attention")
    outer = hidden_id("parent_node__dag", "Inside of DAG")
    root = hidden_id("root", "In the tree of DAG")
    previous_run = hidden_id("previous_run", "Runs that went on from DAG")

    class Meta:
        model = Dag
        fields = ("state", "owner", "site", "name", "attention", "outer", "root", "previous_run")

    def filter_attention(self, queryset: QuerySet[Dag], name: str, value: bool) -> QuerySet[Dag]:
        """Only those that a person should look at now; `false` leaves all."""
        return needing_attention(queryset, now=timezone.now()) if value else queryset


class NodeFilter(filters.FilterSet):
    """Nodes of a DAG by state, kind, name and category."""

    state = filters.MultipleChoiceFilter(choices=NodeState.choices, distinct=False)
    kind = filters.MultipleChoiceFilter(choices=NodeKind.choices, distinct=False)
    name = filters.CharFilter(lookup_expr="icontains", label="Name contains")
    category = filters.CharFilter(label="Category")

    class Meta:
        model = Node
        fields = ("state", "kind", "name", "category")


class ScriptRunFilter(filters.FilterSet):
    """Runs of scripts by state, kind and node."""

    state = filters.MultipleChoiceFilter(choices=ScriptState.choices, distinct=False)
    kind = filters.MultipleChoiceFilter(choices=ScriptKind.choices, distinct=False)
    node = hidden_id("node", "Node")

    class Meta:
        model = ScriptRun
        fields = ("state", "kind", "node")


class PlacementFilter(filters.FilterSet):
    """Placement requests by state, owner and DAG."""

    state = filters.MultipleChoiceFilter(choices=RequestState.choices, distinct=False)
    owner = filters.CharFilter(field_name="owner__username", label="Owner")
    dag = filters.NumberFilter(
        method="filter_dag", min_value=1, max_value=MAX_ID, decimal_places=0, label="DAG"
    )
    url = filters.CharFilter(method="filter_url", max_length=200, label="Address contains")

    class Meta:
        model = PlacementRequest
        fields = ("state", "owner", "dag", "url")

    def filter_dag(
        self, queryset: QuerySet[PlacementRequest], name: str, value: int
    ) -> QuerySet[PlacementRequest]:
        """The requests of the nodes of a DAG."""
        return queryset.filter(topic=DATA_TOPIC, topic_key=value)

    def filter_url(
        self, queryset: QuerySet[PlacementRequest], name: str, value: str
    ) -> QuerySet[PlacementRequest]:
        """Those from or to such an address."""
        either = Q(source_url__icontains=value) | Q(destination_url__icontains=value)
        return queryset.filter(either)


class JobFilter(filters.FilterSet):
    """Jobs by state, owner, DAG and name."""

    state = filters.MultipleChoiceFilter(choices=JobState.choices, distinct=False)
    owner = filters.CharFilter(field_name="owner__username", label="Owner")
    dag = filters.NumberFilter(method="filter_dag", min_value=1, decimal_places=0, label="DAG")
    name = filters.CharFilter(lookup_expr="icontains", label="Name contains")

    class Meta:
        model = Job
        fields = ("state", "owner", "dag", "name")

    def filter_dag(self, queryset: QuerySet[Job], name: str, value: int) -> QuerySet[Job]:
        """The jobs of the nodes of a DAG."""
        return queryset.filter(topic=JOB_TOPIC, topic_key=value)


class TaskQueueFilter(filters.FilterSet):
    """TaskQueues by whose jobs they are and what these need.

    `site` and `platform` are where the jobs may run: those that name none are found as well.
    """

    owner = filters.CharFilter(field_name="owner__username", label="Owner")
    group = filters.CharFilter(field_name="owner_group", label="Group")
    site = filters.CharFilter(method="filter_site", max_length=64, label="May run at")
    platform = filters.CharFilter(method="filter_platform", max_length=64, label="Platform")
    tag = filters.CharFilter(method="filter_tag", max_length=64, label="Needs the tag")
    job_type = filters.CharFilter(label="Job type")
    setup = filters.CharFilter(label="Setup")
    cpu_time_s = filters.NumberFilter(
        min_value=1,
        max_value=2**31 - 1,
        decimal_places=0,
        label="CPU segment",
        widget=forms.HiddenInput,
    )
    sort = filters.ChoiceFilter(
        choices=[(order.value, order.value) for order in Order],
        method="keep_all",
        label="Order",
        widget=forms.HiddenInput,
    )

    class Meta:
        model = TaskQueue
        fields = (
            "owner", "group", "site", "platform", "tag", "job_type", "setup", "cpu_time_s", "sort",
        )  # fmt: skip

    @property
    def order(self) -> Order:
        """The order that was asked for; what waits most comes first unless it was another."""
        return Order(self.form.cleaned_data["sort"] or Order.WAITING)

    def filter_site(
        self, queryset: QuerySet[TaskQueue], name: str, value: str
    ) -> QuerySet[TaskQueue]:
        """Those whose jobs name the site or none, and do not rule it out."""
        named = Q(sites=[]) | Q(sites__contains=[value])
        return queryset.filter(named).exclude(banned_sites__contains=[value])

    def filter_platform(
        self, queryset: QuerySet[TaskQueue], name: str, value: str
    ) -> QuerySet[TaskQueue]:
        """Those whose jobs name the platform or none."""
        return queryset.filter(Q(platforms=[]) | Q(platforms__contains=[value]))

    def filter_tag(
        self, queryset: QuerySet[TaskQueue], name: str, value: str
    ) -> QuerySet[TaskQueue]:
        """Those whose jobs need the tag."""
        return queryset.filter(tags__contains=[value])

    def keep_all(self, queryset: QuerySet[TaskQueue], name: str, value: str) -> QuerySet[TaskQueue]:
        """The order leaves all; the list itself follows it."""
        return queryset


class PilotFilter(filters.FilterSet):
    """Pilots by state, site and queue."""

    state = filters.MultipleChoiceFilter(choices=PilotState.choices, distinct=False)
    site = filters.CharFilter(field_name="queue__site__name", label="Site")
    queue = filters.CharFilter(field_name="queue__name", label="Queue")

    class Meta:
        model = Pilot
        fields = ("state", "site", "queue")


class SiteFilter(filters.FilterSet):
    """Sites by name and state, and whether they are in use."""

    name = filters.CharFilter(lookup_expr="icontains", label="Name contains")
    state = filters.MultipleChoiceFilter(choices=SiteState.choices, distinct=False)
    is_enabled = filters.BooleanFilter(label="In use")

    class Meta:
        model = Site
        fields = ("name", "state", "is_enabled")

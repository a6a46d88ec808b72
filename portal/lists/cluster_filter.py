"""Filter of the list of clusters: by state, owner, group, label, name, reason, size and time."""

from __future__ import annotations

from collections.abc import Sequence

from portal.lists.base_filter import ListFilter
from portal.lists.filter_fields import Moments, Numbers, Owners, Texts, Words, hidden_numbers
from portal.lists.label_filter import Labels
from portal.lists.sorting import Sorting, by_number, by_text, by_time, newest
from wms.jobs.clusters.states import ClusterState
from wms.jobs.models import Cluster


class ClusterFilter(ListFilter):
    """Clusters by state, owner, group, label, name, size and time."""

    name = Texts(label="Name contains")
    state = Words(choices=ClusterState.choices, label="State")
    owner = Owners(field_name="owner_id", label="Owner")
    group = Words(field_name="accounting_group__name", label="Group")
    label = Labels(label="Label")
    reason = Texts(field_name="state_reason", label="Reason contains")
    created = Moments(field_name="created_at", label="Submitted")
    since = Moments(field_name="state_since", label="In its state since")
    size = Numbers(label="Jobs")
    failed = Numbers(field_name="failed_count", label="Failed jobs")
    id = Numbers(smallest=1, label="Number")
    previous = hidden_numbers("previous", "Reruns of cluster")
    sort = Sorting(
        newest("Submitted", "created"),
        by_text("name", "Name", "name", "cluster"),
        by_number(
            "failed", "Failed jobs", "failed_count", "progress",
            rising="fewest first", falling="most first",
        ),
        by_number("size", "Jobs", "size", "", rising="fewest first", falling="most first"),
        by_time("since", "In its state since", "state_since"),
    )  # fmt: skip

    class Meta:
        model = Cluster
        fields: Sequence[str] = ()

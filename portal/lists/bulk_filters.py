"""Filter of the list of bulk operations: by actor, action, state, reason and time."""

from __future__ import annotations

from collections.abc import Sequence

from portal.lists.base_filter import ListFilter
from portal.lists.filter_fields import Moments, Owners, Texts, Words
from portal.lists.sorting import Sorting, by_number, by_time, newest
from wms.actions.registry import KINDS
from wms.bulk.models import BulkOperation
from wms.bulk.states import BulkState


class BulkFilter(ListFilter):
    """Bulk operations by who acted on what, how, why and when."""

    reason = Texts(label="Reason contains")
    state = Words(choices=BulkState.choices, label="State")
    list = Words(
        field_name="list_name",
        choices=[(kind.name, kind.nouns) for kind in KINDS.values()],
        label="Objects",
    )
    action = Words(label="Action")
    owner = Owners(field_name="owner_id", label="By")
    created = Moments(field_name="created_at", label="Made")
    sort = Sorting(
        newest("Made", "created"),
        by_time("ended", "Ended", "ended_at", is_nullable=True),
        by_number(
            "objects", "Objects", "frozen_count", "progress",
            rising="fewest first", falling="most first",
        ),
    )  # fmt: skip

    class Meta:
        model = BulkOperation
        fields: Sequence[str] = ()

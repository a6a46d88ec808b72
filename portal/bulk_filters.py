"""The filter of the list of bulk operations."""

from __future__ import annotations

from collections.abc import Sequence

from portal.filter_fields import Moments, Owners, Texts, Words
from portal.list_filter import ListFilter
from wms.bulk.models import BulkOperation
from wms.bulk.registry import KINDS
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

    class Meta:
        model = BulkOperation
        fields: Sequence[str] = ()

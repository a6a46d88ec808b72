"""Filter of the list of downtimes: by state, site, author, reason and time."""

from __future__ import annotations

from collections.abc import Sequence

from portal.lists.base_filter import ListFilter
from portal.lists.filter_fields import Moments, Texts, Words
from portal.lists.sorting import Sorting, by_text, by_time, newest
from wms.sites.downtimes.models import Downtime
from wms.sites.downtimes.selectors import DowntimeState


class DowntimeFilter(ListFilter):
    """Downtimes by state, site, author, reason and time."""

    reason = Texts(label="Reason contains")
    state = Words(choices=DowntimeState.choices, label="State")
    site = Words(field_name="site__name", label="Site")
    author = Words(label="Entered by")
    start = Moments(label="Starts")
    end = Moments(label="Ends")
    sort = Sorting(
        newest("Entered", "entered"),
        by_time("start", "Starts", "start"),
        by_time("end", "Ends", "ends_at"),
        by_text("site", "Site", "site__name"),
    )

    class Meta:
        model = Downtime
        fields: Sequence[str] = ()

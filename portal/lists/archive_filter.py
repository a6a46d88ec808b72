"""Filter of the list of archives: by DAG, owner, group, state, installation and times."""

from __future__ import annotations

from collections.abc import Sequence

from portal.lists.base_filter import ListFilter
from portal.lists.filter_fields import Moments, Numbers, Texts, Words
from portal.lists.sorting import Sorting, by_time, newest
from wms.archives.models import ArchivedDag
from wms.dags.states import DAG_TERMINAL, DagState


class ArchiveFilter(ListFilter):
    """Archives by what they are of, and when they came."""

    name = Texts(field_name="name", label="Name contains")
    state = Words(
        choices=[each for each in DagState.choices if each[0] in DAG_TERMINAL], label="State"
    )
    dag = Numbers(field_name="dag_id", label="DAG")
    owner = Texts(field_name="owner_name", label="Owner contains")
    group = Texts(field_name="group_name", label="Group contains")
    installation = Texts(field_name="installation", label="Written by")
    submitted = Moments(field_name="submitted_at", label="Submitted")
    ended = Moments(field_name="ended_at", label="Ended")
    imported = Moments(field_name="imported_at", label="Imported")
    sort = Sorting(
        newest("Imported", "imported"),
        by_time("ended", "Ended", "ended_at"),
    )

    class Meta:
        model = ArchivedDag
        fields: Sequence[str] = ()

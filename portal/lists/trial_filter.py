"""Filter of the list of trials: by DAG file, kind, state, owner, result and time."""

from __future__ import annotations

from collections.abc import Sequence

from portal.lists.base_filter import ListFilter
from portal.lists.filter_fields import Moments, Numbers, Owners, Texts, Words
from portal.lists.sorting import Sorting, by_time, newest
from wms.dags.models import Trial
from wms.dags.trials.states import TrialKind, TrialState


class TrialFilter(ListFilter):
    """Trials by what was tried, whose it is, and how it went."""

    file = Texts(field_name="request__dag_files", label="DAG file contains")
    state = Words(choices=TrialState.choices, label="State")
    kind = Words(choices=TrialKind.choices, label="What")
    owner = Owners(field_name="owner_id", label="Owner")
    exit = Numbers(field_name="exit_code", label="Exit code")
    created = Moments(field_name="created_at", label="Asked for")
    sort = Sorting(
        newest("Asked for", "created"),
        by_time("ended", "Ended", "ended_at", is_nullable=True),
    )

    class Meta:
        model = Trial
        fields: Sequence[str] = ()

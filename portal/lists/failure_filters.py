"""Filter of failure groups, for page, API and dashboard: by message, site, time and decision.

Only groups with failures in the chosen time pass; without one it is the last day.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import django_filters as filters
from django.db.models import QuerySet

from portal.lists.base_filter import ListFilter
from portal.lists.filter_fields import Moments, Numbers, Texts, Words
from portal.lists.remark_filters import Acknowledged, Assigned
from portal.lists.sorting import Sorting, by_number, by_time, newest
from wms.core.models import User
from wms.failures.models import Category, FailureGroup, Kind
from wms.failures.selectors import Window, groups_that_failed
from wms.failures.states import GroupState
from wms.remarks.states import SubjectKind

_MOST = {"rising": "fewest first", "falling": "most first"}
_WINDOWS = [(window.value, window.label) for window in Window]


class FailureFilter(ListFilter):
    """Groups of failures by what they say, where and when they happened, and what was decided.

    `within`, `site` and `dag` also choose which of their failures are counted, of those that the
    user of the request may see.
    """

    text = Texts(label="Message contains")
    state = Words(choices=GroupState.choices, label="State")
    category = Words(choices=Category.choices, label="Category")
    kind = Words(choices=Kind.choices, label="What failed")
    site = filters.CharFilter(method="keep_all", max_length=64, label="Site")
    within = filters.ChoiceFilter(
        choices=_WINDOWS, method="keep_all", label="Time", empty_label=None
    )
    dag = filters.NumberFilter(
        method="keep_all", min_value=1, max_value=2**63 - 1, label="Number of the DAG"
    )
    first = Moments(field_name="first_seen", label="First seen")
    last = Moments(field_name="last_seen", label="Last seen")
    acknowledged = Acknowledged(SubjectKind.FAILURE)
    assigned = Assigned(SubjectKind.FAILURE)
    id = Numbers(smallest=1, label="Number")
    sort = Sorting(
        by_number("count", "Failures", "count", **_MOST),
        by_time("first", "First seen", "first_seen"),
        by_time("last", "Last seen", "last_seen"),
    )

    class Meta:
        model = FailureGroup
        fields: Sequence[str] = ()

    @property
    def window(self) -> Window:
        """Window of time that is counted; a day by default."""
        return Window(self.form.cleaned_data.get("within") or Window.DAY)

    @property
    def at_site(self) -> str:
        """Name of the one site that is counted, or empty."""
        return str(self.form.cleaned_data.get("site") or "")

    @property
    def of_dag(self) -> int | None:
        """Id of the one DAG whose failures are counted; None for all."""
        value = self.form.cleaned_data.get("dag")
        return None if value is None else int(value)

    def keep_all(
        self, queryset: QuerySet[FailureGroup], name: str, value: Any
    ) -> QuerySet[FailureGroup]:
        """Rows unchanged: time, site and DAG are applied together, when failures are counted."""
        return queryset

    def _passing(self, queryset: QuerySet[Any], *, leaving: Collection[str]) -> QuerySet[Any]:
        user: User = self.request.user
        failed = groups_that_failed(
            user, self.window, now=self.now, site=self.at_site, dag_id=self.of_dag
        )
        return super()._passing(queryset, leaving=leaving).filter(pk__in=failed)

    def at_any_time(self, *leaving: str) -> QuerySet[FailureGroup]:
        """Groups that pass every filter except time, site and DAG, for counting failures."""
        return super()._passing(self.queryset.all(), leaving=frozenset(leaving))


class FailureGroupFilter(FailureFilter):
    """The same without counts, for reading groups one after another."""

    sort = Sorting(
        newest("Made"),
        by_time("first", "First seen", "first_seen"),
        by_time("last", "Last seen", "last_seen"),
        by_number("total", "Failures at all", "total", **_MOST),
    )

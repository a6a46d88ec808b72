"""Class that declares one list: its filter, rows and columns, and how its lines are made.

`portal.lists.registry` lists all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from portal.lists.base_filter import ListFilter, checked, normalised
from portal.lists.columns import Column
from wms.core.models import User

#: So many rows are looked up at once by who walks through a whole list.
CHUNK = 1000


@dataclass(frozen=True, slots=True)
class GroupBy:
    """Attribute whose values are counted over the rows; `name` is that of its filter."""

    name: str
    label: str
    expression: Any


@dataclass(frozen=True, slots=True)
class ListSpec:
    """One list: its filters, rows and columns. `search` is the filter of its search field."""

    name: str
    title: str
    noun: str
    filter_class: type[ListFilter]
    rows: Callable[[User], QuerySet[Any]]
    columns: Sequence[Column]
    search: str
    states: Sequence[str] = ()
    state_filter: str = "state"
    groups: Sequence[GroupBy] = ()
    lines: Callable[[Sequence[Any]], Sequence[Any]] = list
    walk: Callable[[ListSpec, ListFilter, User], Iterator[Sequence[Any]]] = field(
        default=lambda kind, list_filter, user: kind.in_order(list_filter)
    )

    def filter_of(
        self, parameters: Mapping[str, Any], user: User, *, now: datetime | None = None
    ) -> ListFilter:
        """Filter over the rows that the user may see."""
        return self.filter_class(parameters, queryset=self.rows(user), now=now, user=user)

    def normalised(self, parameters: Mapping[str, Any]) -> dict[str, list[str]]:
        """Filters among parameters, as a value to be stored. Raises InvalidInput."""
        return normalised(self.filter_class, parameters)

    def chosen(
        self, parameters: Mapping[str, Any], user: User, *, now: datetime | None = None
    ) -> QuerySet[Any]:
        """Rows that the filter selects among those the user may see. Raises InvalidInput.

        Relative times count back from `now`.
        """
        return self.filter_of(self.normalised(parameters), user, now=now).qs

    def column_names(self) -> list[str]:
        """The names of all columns, in their order."""
        return [column.name for column in self.columns]

    def shown_columns(
        self, names: Sequence[str], list_filter: ListFilter | None = None
    ) -> list[Column]:
        """Columns of these names with those that are always shown; the default ones without names.

        The column by which the list is sorted is included.
        """
        sorted_by = (
            list_filter.order.sort.columns[:1]
            if list_filter is not None and list_filter.is_sorted
            else ()
        )
        return [
            column
            for column in self.columns
            if column.is_fixed
            or column.name in sorted_by
            or (column.name in names if names else column.is_usual)
        ]

    def kept(self, parameters: Mapping[str, Any]) -> dict[str, list[str]]:
        """Filters among parameters and their order, for a saved filter. Raises InvalidInput.

        A value as from `normalised`, with `sort` beside the filters.
        """
        return checked(self.filter_class, parameters).kept()

    def in_order(self, list_filter: ListFilter) -> Iterator[Sequence[Any]]:
        """All sorted lines in chunks, so that few are in memory at a time."""
        rows = list_filter.some(None, CHUNK)
        yield self.lines(rows)
        while len(rows) == CHUNK:
            rows = list_filter.some(list_filter.order.border_of(rows[-1]), CHUNK)
            yield self.lines(rows)

"""Sort links of a list, for column heads and the sort menu."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import QueryDict

from portal.lists.base_filter import SORT, ListFilter
from portal.lists.columns import Column
from portal.lists.sorting import Order
from portal.web.lists.paging import narrowed

_ARIA = {True: "descending", False: "ascending"}


@dataclass(frozen=True, slots=True)
class SortLink:
    """Link to the list in an order. `sorted_now` is the present order if it is by this sort."""

    order: Order
    query: str
    sorted_now: Order | None

    @property
    def is_chosen(self) -> bool:
        """True for the present order of the list."""
        return self.order == self.sorted_now

    @property
    def aria(self) -> str:
        """Order of the list as the column head's `aria-sort`."""
        return "" if self.sorted_now is None else _ARIA[self.sorted_now.is_falling]


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column, with the link that sorts by it."""

    column: Column
    link: SortLink | None


def heads_of(columns: Sequence[Column], list_filter: ListFilter, query: QueryDict) -> list[Head]:
    """Column heads. The link of the sorted column reverses the order."""
    found: dict[str, SortLink] = {}
    for sort in list_filter.sorting.sorts:
        is_current = sort == list_filter.order.sort
        link = _link(list_filter, list_filter.order.turned if is_current else sort.first, query)
        found |= {name: link for name in sort.columns}
    return [Head(column, found.get(column.name)) for column in columns]


def choices_of(list_filter: ListFilter, query: QueryDict) -> list[tuple[str, list[SortLink]]]:
    """Every sort by its label, with the links to both orders."""
    return [
        (
            sort.label,
            [_link(list_filter, order, query) for order in (sort.first, sort.first.turned)],
        )
        for sort in list_filter.sorting.sorts
    ]


def _link(list_filter: ListFilter, order: Order, query: QueryDict) -> SortLink:
    text = None if order == list_filter.sorting.usual else [order.text]
    current = list_filter.order if order.sort == list_filter.order.sort else None
    return SortLink(order, narrowed(query, SORT, text), current)

"""The ways to the same list in another order: in the heads of its columns, and in a menu."""

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
    """A link to the list in an order. `sorted_now` is that of the list if it is of this sort."""

    order: Order
    query: str
    sorted_now: Order | None

    @property
    def is_chosen(self) -> bool:
        """True for the order of the list."""
        return self.order == self.sorted_now

    @property
    def aria(self) -> str:
        """The order of the list, as heads of columns tell it to screen readers."""
        return "" if self.sorted_now is None else _ARIA[self.sorted_now.is_falling]


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column, with the link that sorts by it."""

    column: Column
    link: SortLink | None


def heads_of(columns: Sequence[Column], asked: ListFilter, query: QueryDict) -> list[Head]:
    """The heads of these columns. The link of one that is sorted by turns the order round."""
    found: dict[str, SortLink] = {}
    for sort in asked.sorting.sorts:
        is_current = sort == asked.order.sort
        link = _link(asked, asked.order.turned if is_current else sort.first, query)
        found |= {name: link for name in sort.columns}
    return [Head(column, found.get(column.name)) for column in columns]


def choices_of(asked: ListFilter, query: QueryDict) -> list[tuple[str, list[SortLink]]]:
    """Every sort by its label, with the links to its two orders."""
    return [
        (sort.label, [_link(asked, order, query) for order in (sort.first, sort.first.turned)])
        for sort in asked.sorting.sorts
    ]


def _link(asked: ListFilter, order: Order, query: QueryDict) -> SortLink:
    text = None if order == asked.sorting.usual else [order.text]
    current = asked.order if order.sort == asked.order.sort else None
    return SortLink(order, narrowed(query, SORT, text), current)

"""Paging of long lists by keyset: the last page is as fast as the first.

Also by number, for lists in a fixed order, and the addresses of other pages and other filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import QueryDict

from portal.lists.base_filter import ListFilter

_Row = TypeVar("_Row", bound=Model)

PAGE_SIZE = 50
#: In an address: the saved filter that it came from, or that none is wanted.
SAVED, NO_SAVED = "saved", "none"


@dataclass(frozen=True, slots=True)
class Page(Generic[_Row]):
    """A page of a list, with the links to the rows before and after it."""

    rows: Sequence[_Row]
    newer: str
    older: str


@dataclass(frozen=True, slots=True)
class NumberedPage(Generic[_Row]):
    """A page of a numbered list, with the links to its start and to the rows after it."""

    rows: Sequence[_Row]
    first: str
    following: str


def numbered_page_of(
    queryset: QuerySet[_Row], query: QueryDict, *, by: str, page_size: int
) -> NumberedPage[_Row]:
    """Page from number `from` of the query on, by an ascending column of numbers. One query."""
    start = _border(query, "from")
    onward = queryset if start is None else queryset.filter(**{f"{by}__gte": start})
    rows = list(onward.order_by(by)[: page_size + 1])
    following = {"from": getattr(rows[-1], by)} if len(rows) > page_size else None
    return NumberedPage(
        rows=rows[:page_size],
        first="" if start is None else way(query),
        following="" if following is None else way(query, **following),
    )


def page_of(
    queryset: QuerySet[_Row], query: QueryDict, *, page_size: int = PAGE_SIZE
) -> Page[_Row]:
    """Page that `before` or `after` in the query asks for, by default the first.

    One query. The list is ordered by falling ids; the ways on keep all other parameters.
    """
    before, after = _border(query, "before"), _border(query, "after")
    if after is not None:
        rows = list(queryset.filter(pk__gt=after).order_by("pk")[: page_size + 1])
        has_newer, has_older = len(rows) > page_size, True
        rows = rows[:page_size][::-1]
    else:
        older_only = queryset if before is None else queryset.filter(pk__lt=before)
        rows = list(older_only.order_by("-pk")[: page_size + 1])
        has_newer, has_older = before is not None, len(rows) > page_size
        rows = rows[:page_size]
    return Page(
        rows=rows,
        newer=way(query, after=rows[0].pk) if rows and has_newer else "",
        older=way(query, before=rows[-1].pk) if rows and has_older else "",
    )


def sorted_page(list_filter: ListFilter, query: QueryDict) -> Page[Any]:
    """Page that `before` or `after` asks for of a sorted list. One query or two.

    `before` is the last row of the page before this one, as in a list with the latest first.
    """
    order = list_filter.order
    after, before = (order.parse(query.get(name, "")) for name in ("after", "before"))
    rows = list_filter.some(after or before, PAGE_SIZE + 1, is_back=after is not None)
    is_more = len(rows) > PAGE_SIZE
    rows = rows[:PAGE_SIZE]
    if after is not None:
        rows.reverse()
    has_newer, has_older = (is_more, True) if after else (before is not None, is_more)
    return Page(
        rows=rows,
        newer=way(query, after=order.border_of(rows[0])) if rows and has_newer else "",
        older=way(query, before=order.border_of(rows[-1])) if rows and has_older else "",
    )


def _border(query: QueryDict, name: str) -> int | None:
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def way(query: QueryDict, **border: Any) -> str:
    """Address of another page of the same list; without a border, of its first page."""
    changed = query.copy()
    for name in ("before", "after", "from"):
        changed.pop(name, None)
    for name, value in border.items():
        changed[name] = str(value)
    return f"?{changed.urlencode()}"


def narrowed(query: QueryDict, name: str, values: Sequence[str] | None) -> str:
    """Address with other values of one filter, from the first page on."""
    changed = query.copy()
    for gone in (name, "before", "after", "from", SAVED):
        changed.pop(gone, None)
    if values:
        changed.setlist(name, list(values))
    # An address without anything would open the list with the user's own filter.
    return f"?{changed.urlencode() or f'{SAVED}={NO_SAVED}'}"

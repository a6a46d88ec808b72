"""Pages of long lists by the id at their border: the last page is as quick as the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import QueryDict

_Row = TypeVar("_Row", bound=Model)

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Page(Generic[_Row]):
    """Some objects of a list that has the latest first, and the ways on from here."""

    rows: Sequence[_Row]
    newer: str
    older: str


@dataclass(frozen=True, slots=True)
class Stretch(Generic[_Row]):
    """Some objects of a numbered list, and the ways to its first ones and on from here."""

    rows: Sequence[_Row]
    first: str
    following: str


def stretch_of(
    queryset: QuerySet[_Row], query: QueryDict, *, by: str, page_size: int
) -> Stretch[_Row]:
    """The objects from number `from` of the query on, by a rising column of numbers. One query."""
    start = _border(query, "from")
    onward = queryset if start is None else queryset.filter(**{f"{by}__gte": start})
    rows = list(onward.order_by(by)[: page_size + 1])
    following = {"from": getattr(rows[-1], by)} if len(rows) > page_size else None
    return Stretch(
        rows=rows[:page_size],
        first="" if start is None else way(query),
        following="" if following is None else way(query, **following),
    )


def page_of(
    queryset: QuerySet[_Row], query: QueryDict, *, page_size: int = PAGE_SIZE
) -> Page[_Row]:
    """The page that `before` or `after` in the query asks for, the first one otherwise.

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


def _border(query: QueryDict, name: str) -> int | None:
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def way(query: QueryDict, **border: Any) -> str:
    """The address of another part of the same list; without a border, of its first one."""
    changed = query.copy()
    for name in ("before", "after", "from"):
        changed.pop(name, None)
    for name, value in border.items():
        changed[name] = str(value)
    return f"?{changed.urlencode()}"

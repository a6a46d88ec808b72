"""Cursor pagination of API lists: latest first, as sorted, in file order, by process, or by name.

It is equally fast at any position of a long list, and stable under inserts. An order that no index
has is refused for too many rows. Also checks page size and cursor.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.db.models import QuerySet
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from portal.lists.base_filter import SORT, ListFilter
from wms.core.database.counting import EXACT_UP_TO, count_up_to

_BACK = "back:"
#: A cursor as it stands in the schema.
_EXAMPLE = "cD00MTI3"
_NO_CURSOR = "is not a cursor of this list"


class NewestFirst(CursorPagination):
    """Latest object first, or in the order of the list's `sort`.

    `page_size` is up to 1,000; `next` and `previous` are ready addresses.
    """

    ordering = "-id"
    page_size_query_param = "page_size"
    max_page_size = 1000
    template = None
    #: What a place in the list looks like; anything else in a cursor was made up.
    position = re.compile(r"[0-9]{1,18}")
    _links: tuple[str | None, str | None] | None = None

    def paginate_queryset(
        self, queryset: QuerySet[Any], request: Request, view: Any = None
    ) -> list[Any] | None:
        """Return the page at which the cursor points. Raises ValidationError."""
        list_filter = getattr(request, "list_filter", None)
        if (
            isinstance(list_filter, ListFilter)
            and SORT in list_filter.filters
            and list_filter.is_sorted
        ):
            return self._in_order(list_filter, request)
        found: list[Any] | None = super().paginate_queryset(queryset, request, view)
        return found

    def _in_order(self, list_filter: ListFilter, request: Request) -> list[Any]:
        order, size = list_filter.order, self.get_page_size(request)
        cursor = request.query_params.get(self.cursor_query_param, "")
        is_back, border = cursor.startswith(_BACK), order.parse(cursor.removeprefix(_BACK))
        if cursor and border is None:
            raise ValidationError({self.cursor_query_param: "is not a cursor of this order"})
        if not list_filter.is_walked and count_up_to(list_filter.qs, EXACT_UP_TO) > EXACT_UP_TO:
            # A program might take some of them for all.
            raise ValidationError({SORT: _too_many(list_filter)})
        rows = list_filter.some(border, size + 1, is_back=is_back)
        is_more, rows = len(rows) > size, rows[:size]
        if is_back:
            rows.reverse()
        address = request.build_absolute_uri()
        ends = [str(order.border_of(row)) for row in (rows[:1] + rows[-1:])]
        back = _at(address, _BACK + ends[0]) if ends else None
        on = _at(address, ends[-1]) if ends else None
        has_on, has_back = (True, is_more) if is_back else (is_more, border is not None)
        self._links = (on if has_on else None, back if has_back else None)
        return rows

    def get_next_link(self) -> str | None:
        """Return the address of the next page."""
        found: str | None = self._links[0] if self._links else super().get_next_link()
        return found

    def get_previous_link(self) -> str | None:
        """Return the address of the page before."""
        found: str | None = self._links[1] if self._links else super().get_previous_link()
        return found

    def get_page_size(self, request: Request) -> int:
        """Return the size asked for. A size that is not one is a fault, not the default."""
        text = request.query_params.get(self.page_size_query_param)
        if text is None:
            return int(self.page_size)
        if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= self.max_page_size:
            raise ValidationError({"page_size": f"must be a number from 1 to {self.max_page_size}"})
        return int(text)

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Return the place in the list at which the page begins."""
        try:
            cursor = super().decode_cursor(request)
        except NotFound:
            raise ValidationError({"cursor": _NO_CURSOR}) from None
        if cursor is None or cursor.position is None:
            return cursor
        if not self.position.fullmatch(cursor.position):
            raise ValidationError({"cursor": _NO_CURSOR})
        return cursor

    def get_paginated_response(self, data: Any) -> Response:
        """Return the page, with the addresses and the cursors of the pages beside it."""
        on, back = self.get_next_link(), self.get_previous_link()
        page = {"next": on, "previous": back, "next_cursor": _cursor_in(on)}
        return Response({**page, "previous_cursor": _cursor_in(back), "results": data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Describe the page: all keys are always there."""
        described: dict[str, Any] = super().get_paginated_response_schema(schema)
        links, results = dict(described["properties"]), described["properties"].pop("results")
        links.pop("results", None)
        for name, where in (("next", "next page"), ("previous", "page before")):
            at = f"https://portal.example.org/api/v1/dags/?cursor={_EXAMPLE}"
            links[name] |= {"example": at, "description": f"Address of the {where}; null: none."}
            links[f"{name}_cursor"] = {
                "type": "string",
                "nullable": True,
                "example": _EXAMPLE,
                "description": f"`cursor` of the {where}.",
            }
        properties = {**links, "results": results}
        return {**described, "required": list(properties), "properties": properties}


class InFileOrder(NewestFirst):
    """Nodes in the order of the DAG file."""

    ordering = "ordinal"


class ByProcess(NewestFirst):
    """Jobs and rows of one cluster, by their numbers in it."""

    ordering = "process"


class ByName(NewestFirst):
    """Short lists, ordered by name."""

    ordering = "name"
    position = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def _at(address: str, cursor: str) -> str:
    found: str = replace_query_param(address, NewestFirst.cursor_query_param, cursor)
    return found


def _cursor_in(address: str | None) -> str | None:
    if address is None:
        return None
    return parse_qs(urlsplit(address).query)[NewestFirst.cursor_query_param][0]


def _too_many(list_filter: ListFilter) -> str:
    usual = list_filter.sorting.usual.text
    return (
        f"more than {EXACT_UP_TO:,} pass these filters, and no index has them in this order: "
        f"narrow the filter, or take {usual}"
    )

"""Pages by cursor: as quick at the end of a long list as at its start, and stable under inserts."""

from __future__ import annotations

import re
from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request


class NewestFirst(CursorPagination):
    """Latest object first; `page_size` up to 1,000; `next` and `previous` are ready addresses."""

    ordering = "-id"
    page_size_query_param = "page_size"
    max_page_size = 1000
    template = None
    #: What a place in the list looks like; anything else in a cursor was made up.
    position = re.compile(r"[0-9]{1,18}")

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
        cursor = super().decode_cursor(request)
        if cursor is None or cursor.position is None:
            return cursor
        if not self.position.fullmatch(cursor.position):
            raise ValidationError({"cursor": "is not a cursor of this list"})
        return cursor

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Describe the page: all three keys are always there."""
        described: dict[str, Any] = super().get_paginated_response_schema(schema)
        return {**described, "required": ["next", "previous", "results"]}


class InFileOrder(NewestFirst):
    """Nodes as they stand in the DAG file."""

    ordering = "ordinal"


class ByName(NewestFirst):
    """Few things, in the order of their names."""

    ordering = "name"
    position = re.compile(r"[A-Za-z0-9_.-]{1,64}")

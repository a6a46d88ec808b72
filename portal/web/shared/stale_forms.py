"""Refusal of stale forms: an action fails if its object changed since the form was shown.

A change is seen by the object's state, or by a version made of its values; they are compared while
the row is locked for the action.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest

from wms.core.errors import Conflict
from wms.core.stale import locked_while, refuse_stale

#: The field of a form that says it.
FIELD = "seen"
_Row = TypeVar("_Row", bound=Model)


def seen_by(request: HttpRequest) -> str:
    """Version that the form was made from; empty for a program, which decides by itself."""
    return request.POST.get(FIELD, "")


def while_seen(
    request: HttpRequest, rows: QuerySet[_Row], state: Callable[[_Row], str], *, what: str
) -> AbstractContextManager[_Row]:
    """Run the block with the row locked, if it is in the state that the form showed.

    Raises Conflict, with both states, otherwise.
    """
    return locked_while(rows, lambda row: refuse_stale(seen_by(request), state(row), what=what))


def while_version(
    request: HttpRequest, rows: QuerySet[_Row], version: Callable[[_Row], str], *, what: str
) -> AbstractContextManager[_Row]:
    """Run the block with the row locked, if the form's version is current. Raises Conflict."""

    def compare(row: _Row) -> None:
        seen = seen_by(request)
        if seen and seen != version(row):
            raise Conflict(
                f"Nothing was done: {what} changed since this form was loaded. What is shown now "
                "is how it is; enter your change again."
            )

    return locked_while(rows, compare)


def version_of(*values: Any) -> str:
    """Version of values: equal for equal values."""
    text = json.dumps(values, sort_keys=True, default=str)
    return f"v{hashlib.sha256(text.encode()).hexdigest()[:16]}"

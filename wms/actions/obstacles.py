"""Why an object cannot be acted on: conditions on its row, asked of the database or of a row."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Expression, F, Field, Model, Q, Value
from django.db.models.functions import Concat

#: A condition on an object's row, and what is in the way when it is true.
Obstacle = tuple[Q, Expression]


def of_state(sources: Collection[str]) -> Obstacle:
    """In the way of what can be done in these states only."""
    return ~Q(state__in=sorted(sources)), Concat(Value("it is "), F("state"))


def when(condition: Q, words: str) -> Obstacle:
    """In the way where the condition is true."""
    return condition, Value(words)


def holds(condition: Q, row: Model) -> bool:
    """True when the condition is true of a row as it was read; asks the database nothing.

    It may compare columns of the row itself, by equality, `in` and `isnull`: else ValueError.
    """
    found = (_holds_part(part, row) for part in condition.children)
    is_true = all(found) if condition.connector == Q.AND else any(found)
    return is_true != condition.negated


def _holds_part(part: Any, row: Model) -> bool:
    if isinstance(part, Q):
        return holds(part, row)
    if not isinstance(part, tuple):
        raise ValueError(f"{part} is no comparison of a column")
    column, _, test = part[0].partition("__")
    found = row._meta.get_field(column)
    if not isinstance(found, Field):
        raise ValueError(f"{column} is no column")
    value = getattr(row, found.attname)
    if test == "isnull":
        return bool((value is None) == part[1])
    if test == "in":
        return bool(value in part[1])
    if test:
        raise ValueError(f"{part[0]} is not compared in memory")
    return bool(value == part[1])

"""Obstacles to actions: conditions on an object's row, each with the reason why it cannot be done.

They are evaluated by the database, or in memory on a row as it was read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Expression, F, Field, Model, Q, Value
from django.db.models.functions import Concat

#: Condition on an object's row, and the reason why it cannot be acted on when that is true.
Obstacle = tuple[Q, Expression]


def of_state(sources: Collection[str]) -> Obstacle:
    """Obstacle to an action that is possible in these states only."""
    return ~Q(state__in=sorted(sources)), Concat(Value("it is "), F("state"))


def when(condition: Q, words: str) -> Obstacle:
    """Obstacle where the condition is true, with its reason."""
    return condition, Value(words)


def holds(condition: Q, row: Model) -> bool:
    """Whether the condition is true of a row as it was read, without a query.

    It may compare columns of the row by equality, `in` and `isnull`. Raises ValueError for others.
    """
    parts = (_holds_part(part, row) for part in condition.children)
    is_true = all(parts) if condition.connector == Q.AND else any(parts)
    return is_true != condition.negated


def _holds_part(part: Any, row: Model) -> bool:
    if isinstance(part, Q):
        return holds(part, row)
    if not isinstance(part, tuple):
        raise ValueError(f"{part} is no comparison of a column")
    column, _, test = part[0].partition("__")
    field = row._meta.get_field(column)
    if not isinstance(field, Field):
        raise ValueError(f"{column} is no column")
    value = getattr(row, field.attname)
    if test == "isnull":
        return bool((value is None) == part[1])
    if test == "in":
        return bool(value in part[1])
    if test:
        raise ValueError(f"{part[0]} is not compared in memory")
    return bool(value == part[1])

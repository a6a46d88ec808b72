"""Refusal of stale decisions: the state that a person saw is compared with the locked row.

Two people who decide at once about the same thing both compare before either has changed it; only
who compares with the row locked, in the transaction of the change, sees what the other one did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet

from wms.core.errors import Conflict, NotFound

_Row = TypeVar("_Row", bound=Model)


@contextmanager
def locked_while(rows: QuerySet[_Row], compare: Callable[[_Row], None]) -> Iterator[_Row]:
    """Lock a row, let `compare` refuse what it has become, and do the block in one transaction.

    For entities whose services lock the row first, too: nothing is locked in another order. Raises
    NotFound when there is no such row any more.
    """
    with transaction.atomic():
        row = rows.order_by().select_for_update(of=("self",)).first()
        if row is None:
            raise NotFound("It was removed meanwhile.")
        compare(row)
        yield row


def refuse_stale(seen: str, now: str, *, what: str) -> None:
    """Raise Conflict when `what` was seen in another state; nothing seen is nothing to compare."""
    if seen and seen != now:
        raise Conflict(
            f"Nothing was done: {what} was {_words(seen)} when this form was loaded, and is "
            f"{_words(now)} now. Decide again."
        )


def _words(state: str) -> str:
    return state[:60].replace("_", " ")

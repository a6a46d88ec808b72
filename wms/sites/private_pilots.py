"""Private pilots of a queue: the column that says so, and whether each pilot has its own owner.

They are for the one owner that the queue names, or each for the owner of a TaskQueue that is drawn.
"""

from __future__ import annotations

from typing import Protocol

from django.db import models


def is_private_field() -> models.BooleanField[bool, bool]:
    """Column that says whether a queue takes private pilots only."""
    return models.BooleanField(
        default=False,
        db_default=False,
        help_text="Private pilots: without an owner below, each is sent for a user whose jobs "
        "wait, drawn by the priorities of the TaskQueues, and runs only this user's jobs.",
    )


class OwnerColumns(Protocol):
    """The columns of a queue that say whose its pilots are."""

    is_private: bool
    owner_id: int | None


def has_owners(queue: OwnerColumns) -> bool:
    """Whether each pilot of a queue is private to somebody else, drawn when it is sent."""
    return queue.is_private and queue.owner_id is None

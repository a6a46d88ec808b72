"""Priority of a DAG among its owner's: its check, and the one that counts where none is given.

It has the scale of the jobs' priorities, from 0 to 10, since it becomes that of the DAG's jobs.
"""

from __future__ import annotations

from django.db.models import Value
from django.db.models.functions import Coalesce

from matching.task_queues.weighted_draws import MAX_JOB_PRIORITY

USUAL_PRIORITY = 1


def checked_priority(value: int | str) -> int:
    """Priority of a DAG, from a number or a text. Raises ValueError."""
    text = str(value).strip()
    is_whole = not isinstance(value, bool) and text.isascii() and text.isdigit() and len(text) < 4
    if not is_whole or int(text) > MAX_JOB_PRIORITY:
        raise ValueError(f"must be a whole number from 0 to {MAX_JOB_PRIORITY}")
    return int(text)


def counting_priority() -> Coalesce:
    """Expression on a DAG's row: its priority, or the usual one."""
    return Coalesce("priority", Value(USUAL_PRIORITY))

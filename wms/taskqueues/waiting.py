"""Rows of waiting jobs and their counts: join, leave and take, each in one statement.

Also the worker node (host) of a pilot that claims, to which jobs that have failed there are not
given, and the folding of the counts' entries.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from django.db import connection

from matching.task_queues.weighted_draws import Law
from wms.core.database.statements import prepared_rows, whole_numbers
from wms.taskqueues.draws.sql import HAS_FAILED_AT, TAKE_BY
from wms.taskqueues.sql import (
    FOLD_TALLY,
    JOIN_TASK_QUEUES,
    LEAVE_TASK_QUEUES,
    LEAVE_UNLESS_CLAIMED,
)


@dataclass(frozen=True, slots=True)
class Taken:
    """A job that was taken out of its TaskQueue; whether it was seen to be the last one."""

    job_id: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class ClaimingHost:
    """The host of a claiming pilot: jobs that have failed there are left to other hosts.

    One that has waited so long is given all the same. Without `takes_retries` all that have failed
    anywhere are left to others, however long they wait.
    """

    host: str = ""
    patience_s: float = 0.0
    takes_retries: bool = True

    def parameters(self) -> dict[str, Any]:
        """The parameters of the statements that take."""
        return asdict(self)


#: Takes whatever there is.
ANYONE = ClaimingHost()


class Rest(NamedTuple):
    """Columns that few waiting jobs have: hosts that they avoid, their set of inputs."""

    hosts: tuple[str, ...] = ()
    input_set: int | None = None
    input_version: int = 0


def join(
    job_ids: Sequence[int],
    task_queue_ids: Sequence[int],
    priorities: Sequence[int],
    rests: Sequence[Rest | None],
) -> None:
    """Let jobs wait in TaskQueues, whose rows the caller has locked against their removal."""
    given = [
        {"job_id": job_id, **rest._asdict()}
        for job_id, rest in zip(job_ids, rests, strict=True)
        if rest is not None
    ]
    with connection.cursor() as cursor:
        columns = (job_ids, task_queue_ids, priorities)
        cursor.execute(JOIN_TASK_QUEUES, [*map(whole_numbers, columns), json.dumps(given)])


def has_failed_at(host: str) -> bool:
    """Whether any waiting job has failed on this host."""
    return bool(prepared_rows(HAS_FAILED_AT, {"host": host})[0][0])


def leave(job_ids: Collection[int], *, skips_claimed: bool = False) -> set[int]:
    """Take jobs out of their TaskQueues; the ids of those in which some did wait.

    Waits for claims that are taking some of them at this moment, or passes over these.
    """
    statement = LEAVE_UNLESS_CLAIMED if skips_claimed else LEAVE_TASK_QUEUES
    with connection.cursor() as cursor:
        cursor.execute(statement, [list(job_ids)])
        return {row[0] for row in cursor.fetchall()}


def take(task_queue_id: int, law: Law, taker: ClaimingHost = ANYONE) -> Taken | None:
    """Draw a job of this TaskQueue and take it out; None when there is none for this taker."""
    rows = prepared_rows(TAKE_BY[law], {"task_queue": task_queue_id, **taker.parameters()})
    return Taken(job_id=rows[0][0], is_last=rows[0][1] <= 1) if rows else None


def fold_tally() -> int:
    """Sum up the entries of the count; the number of rows written."""
    with connection.cursor() as cursor:
        cursor.execute(FOLD_TALLY)
        return int(cursor.rowcount)

"""Attempts that were granted together, under one lease: ended together, or given back.

Set-based, so that small files cost few statements: what is done here by one statement is what
`operations.end_attempt` does for one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from wms.core.actors import Actor
from wms.core.database.permanent_errors import storable
from wms.core.database.statements import prepared_rows, whole_numbers
from wms.core.statemachine import Increment
from wms.placement import lifecycle
from wms.placement.beginnings import Started
from wms.placement.models import PlacementAttempt
from wms.placement.modules.protocol import TransferResult
from wms.placement.operations import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    lock_with_leaders,
    publish,
)
from wms.placement.sql import END_ATTEMPTS

_ACTOR = Actor.system("placement")
_JITTER = 0.2


@dataclass(frozen=True, slots=True)
class Success:
    """An attempt that has done its work: what it brought, and when it began and ended."""

    started: Started
    result: TransferResult = field(repr=False)
    began_at: datetime
    ended_at: datetime


@transaction.atomic
def end_successes(successes: Sequence[Success], *, now: datetime) -> set[int]:
    """Complete the requests of attempts of one lease; the ids of those that were completed.

    Their contents appear in the workspaces with it. None is of a logical name, and none takes a
    file out of a workspace. Those that others have ended are passed over.
    """
    by_id = {each.started.request_id: each for each in successes}
    lock_with_leaders(by_id, (each.started.request.leader_id for each in successes))
    rows = prepared_rows(
        END_ATTEMPTS,
        {
            "ids": whole_numbers(by_id),
            "sizes": _numbers(each.result.size_bytes for each in by_id.values()),
            "began": [each.began_at for each in by_id.values()],
            "ended": [each.ended_at for each in by_id.values()],
            "notes": [storable(each.result.note) for each in by_id.values()],
            "lease": successes[0].started.lease,
        },
    )
    closed = {pk: by_id[pk] for pk in sorted(pk for (pk,) in rows)}
    publish(
        (
            (each.started.request.workspace_id, path, sha256)
            for each in closed.values()
            for path, sha256 in each.result.contents.items()
        ),
        now,
    )
    lifecycle.apply(
        "complete",
        list(closed),
        actor=_ACTOR,
        facts={pk: {"attempt": each.started.number, "exit_code": 0} for pk, each in closed.items()},
        ended_at=now,
    )
    return set(closed)


def _numbers(values: Iterable[int | None]) -> str:
    """The text of an SQL array of whole numbers, some of them not known."""
    return f"{{{','.join('NULL' if each is None else str(each) for each in values)}}}"


@transaction.atomic
def give_back(granted: Collection[Started]) -> list[int]:
    """Let requests wait again whose attempts were granted together and have not begun.

    What was not begun is no attempt, and not counted. Of a service that was lost nobody knows what
    it had begun: all that it was granted counts, since one of them may be to blame. Returns their
    ids; those that others have ended are passed over.
    """
    ids = [each.request_id for each in granted]
    lock_with_leaders(ids, ())
    lease = next(each.lease for each in granted)
    mine = PlacementAttempt.objects.filter(request_id__in=ids, exit_code=None, lease=lease)
    open_ids = sorted(mine.values_list("request_id", flat=True))
    mine.delete()
    applied = lifecycle.apply(
        "give_back", open_ids, actor=_ACTOR, attempt_number=Increment(-1), due_at=None
    )
    return applied.changed


@transaction.atomic
def put_off(started: Started, *, reason: str, now: datetime, jitter: float) -> None:
    """Let a request wait for space: that is no attempt, and none is used up.

    It is looked at again the later, the longer it has waited, and at once when space is released.
    `jitter`, a random number from -1 to 1, keeps those apart that began to wait together.
    """
    pk = started.request_id
    lock_with_leaders([pk], [started.request.leader_id])
    deleted, _ = PlacementAttempt.objects.filter(
        request=pk, exit_code=None, lease=started.lease
    ).delete()
    if deleted:
        pause = min(max((now - started.request.created_at) / 4, FIRST_PAUSE), LONGEST_PAUSE)
        lifecycle.apply(
            "put_off", [pk], actor=_ACTOR, reason=reason, attempt_number=Increment(-1),
            due_at=now + pause * (1 + _JITTER * jitter),
        )  # fmt: skip

"""Names under which a file comes at another host before it is complete, and what earlier ones left.

A server that is cut off keeps what it has got. Each attempt of a request has a name of its own, so
that it never writes into the file of one that was taken for lost; the next attempt knows the names
of those before, nobody else does, and removes what they left.
"""

from __future__ import annotations

from typing import Final

from wms.core.keyed_digests import keyed_digest
from wms.placement.modules.protocol import TransferTask

_SALT: Final = "wms.placement.part"
_MOST_EARLIER: Final = 10


def mark_of(task: TransferTask) -> str:
    """The mark in the name that this attempt writes under."""
    return _mark(task, task.attempt_number)


def earlier_marks(task: TransferTask) -> list[str]:
    """The marks of the attempts before."""
    first = max(1, task.attempt_number - _MOST_EARLIER)
    return [_mark(task, number) for number in range(first, task.attempt_number)]


def _mark(task: TransferTask, number: int) -> str:
    return keyed_digest(_SALT, f"{task.request_id} {number}")[:16]

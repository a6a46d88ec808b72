"""Protocol of batch system adapters (elements): methods, states of pilots, capacity, errors.

Also the ids of a batch in the order of its indices.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class ElementError(Exception):
    """A batch system did not do what was asked."""


class Unreachable(ElementError):
    """No answer came (time-out, connection lost): nothing is known, so change no state."""


class Refused(ElementError):
    """The batch system said no (bad partition, quota, no free slot): show the reason, back off."""


class BadSettings(ElementError):
    """The settings of a queue do not fit its kind of element."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


class BatchState(StrEnum):
    """State of one pilot at its batch system; it only explains, the pilot's heartbeat decides."""

    QUEUED = "queued"
    HELD = "held"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class PilotState:
    """One pilot as its batch system sees it; `native` is the system's own word."""

    state: BatchState
    reason: str = ""
    node: str = ""
    exit_code: int | None = None
    native: str = ""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Places for pilots: `queued` and `running` are this element's own pilots.

    Where pilots cannot wait (`can_queue` is false) more than are free at once are refused.
    """

    is_up: bool
    total: int
    free: int
    queued: int
    running: int
    can_queue: bool = True


#: More pilots are in no batch: an answer with a larger index makes no sense.
_MOST_IN_A_BATCH = 1_000_000


def by_index(ids: Mapping[int, str]) -> list[str]:
    """Return ids in index order, with an empty text for each index that has none."""
    highest = max(ids, default=-1)
    if highest >= _MOST_IN_A_BATCH:
        raise Unreachable(f"no batch has a pilot of the index {highest}")
    return [ids.get(index, "") for index in range(highest + 1)]


class Element(Protocol):
    """One entry of a batch system.

    Every method may raise `Unreachable` (nothing is known) or `Refused` (the system's own reason).
    Ids are the batch system's; they stay valid after a restart of the process that submitted.
    """

    def submit(
        self,
        count: int,
        script: str,
        *,
        name: str,
        cores: int,
        memory_mb: int,
        gpus: int,
        minutes: int,
        secrets: Sequence[str] = (),
    ) -> list[str]:
        """Start `count` pilots as the batch `name` and return their ids in index order.

        Each runs `script` with `sh`, sees its index 0..count-1 as PILOTAGE_INDEX and its slot as
        PILOTAGE_CORES, PILOTAGE_MEMORY_MB and PILOTAGE_GPUS, and finds nothing of the submitting
        process's environment. `secrets` has a word for each pilot, which its script finds as
        PILOTAGE_SECRET; where the batch system allows it, no pilot is sent another's, and none
        stands in a script. After `Refused` none of the batch runs, or comes to run; after any
        other exception some may: `adopt(name)` tells which.
        """
        ...

    def adopt(self, name: str) -> list[str]:
        """Return the ids of the batch `name` in index order, empty if it never started.

        An empty text stands for one in between that the system does not know, or not any more.
        """
        ...

    def status(self, ids: Collection[str]) -> dict[str, PilotState]:
        """Return a state for every id, in one question to the batch system."""
        ...

    def cancel(self, ids: Collection[str]) -> None:
        """End these pilots: a polite signal now, a hard one later; unknown ids are ignored.

        One that had not begun may be MISSING from then on.
        """
        ...

    def capacity(self) -> Capacity:
        """Return what is there and what is free now."""
        ...

    def log(self, pilot_id: str, tail_bytes: int = 65536) -> str:
        """Return the end of what the pilot printed, empty if there is nothing."""
        ...

    def forget(self, ids: Collection[str]) -> None:
        """Remove what the batch system keeps of ended pilots; it ignores others and unknown ids."""
        ...

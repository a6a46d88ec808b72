"""Slot of a pilot: what its queue offers, the batch system gave, open attempts hold, and is free.

Each in cores, memory, GPUs and disk.
"""

from __future__ import annotations

from dataclasses import dataclass

from wms.jobs.selectors import held_in_pilot
from wms.pilots.models import Pilot
from wms.pilots.states import TERMINAL


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts of cores, memory, GPUs and disk; no disk where none is known."""

    cores: int = 0
    memory_mb: int = 0
    gpus: int = 0
    disk_mb: int | None = 0


@dataclass(frozen=True, slots=True)
class Slot:
    """Resources that the queue offers, that the batch system gave, and that open attempts hold.

    `given` is unknown until the pilot calls in. A queue offers no disk in all. What is free is at
    most both, less what is held.
    """

    offered: Amounts
    given: Amounts | None
    held: Amounts
    free: Amounts


def slot_of(pilot: Pilot) -> Slot:
    """The slot of a pilot, with its queue as it is today. One query, with the queue at hand."""
    queue = pilot.queue
    offered = Amounts(queue.cores, queue.memory_mb, queue.gpus, disk_mb=None)
    given = _given(pilot, offered)
    held = Amounts(**held_in_pilot(pilot.pk))
    if given is None or pilot.state in TERMINAL:
        return Slot(offered, given, held, Amounts())
    return Slot(offered, given, held, _free(offered, given, held))


def _given(pilot: Pilot, offered: Amounts) -> Amounts | None:
    if pilot.registered_at is None:
        return None
    node = pilot.node
    return Amounts(
        node.get("slot_cores", offered.cores),
        node.get("slot_memory_mb", offered.memory_mb),
        node.get("slot_gpus", offered.gpus),
        node.get("disk_mb"),
    )


def _free(offered: Amounts, given: Amounts, held: Amounts) -> Amounts:
    return Amounts(
        max(0, min(offered.cores, given.cores) - held.cores),
        max(0, min(offered.memory_mb, given.memory_mb) - held.memory_mb),
        max(0, min(offered.gpus, given.gpus) - held.gpus),
        None if given.disk_mb is None else max(0, given.disk_mb - (held.disk_mb or 0)),
    )

"""Attributes of a site's ad that tell what its queues offer, and how their pilots fare.

All are computed with each publication, and listed with their units in the reference of sites' ads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from matching.ads.classads import quote
from wms.sites.downtimes.models import Downtime
from wms.sites.models import Queue
from wms.sites.selectors import fresh_cpu_time_s

#: Names of the attributes. What is configured or advertised under one of them wins.
FIGURES = (
    "TotalSlots", "FreeSlots", "PilotsRunning", "PilotsQueued", "PilotCpus", "PilotMemory",
    "PilotGpus", "TotalCpus", "TotalMemory", "TotalGpus", "MaxCpus", "MaxMemory", "MaxGpus",
    "MaxCpuTime", "Platforms", "Tags", "Software", "MeanStartup", "FailureRate", "NextDowntime",
    "NextDowntimeEnd", "StorageNear", "StoragesNear", "QueuesLeftOut", "Queues",
)  # fmt: skip
#: The one that lists the queues, as nested ads.
QUEUES = FIGURES[-1]
#: Queues that are listed, and words of a list; the rest is left out.
MOST_QUEUES = 100
MOST_WORDS = 100
_LONGEST_WORD = 64
#: Bytes of the lines for queues besides their ads.
_AROUND_QUEUES = 50


@dataclass(slots=True)
class QueueFigures:
    """Pilots of a queue: alive now, and started or ended lately; software found on their nodes."""

    running: int = 0
    queued: int = 0
    failed: int = 0
    done: int = 0
    starts: int = 0
    waited: timedelta = timedelta()
    software: set[str] = field(default_factory=set)

    def add_starts(self, count: int, waited: timedelta | None) -> None:
        """Add pilots that called in lately, and the time that all of them had waited."""
        self.starts += count
        self.waited += waited or timedelta()


def figures_of(
    queues: Iterable[Queue],
    figures: Mapping[int, QueueFigures],
    downtime: Downtime | None,
    *,
    room: int,
    storages: Sequence[str] = (),
) -> dict[str, str]:
    """Expressions by name, of queues that are switched on, in at most `room` bytes.

    `storages` are those near the site, in order. `downtime` is the next one, or that which has
    begun. Queues for which there is no room are counted in `QueuesLeftOut`; where even the rest is
    too long, there is nothing.
    """
    by_name = sorted(queues, key=lambda queue: queue.name)
    pairs = [(queue, figures.get(queue.pk, QueueFigures())) for queue in by_name]
    texts = {name: _text(value) for name, value in _summed(pairs, downtime)}
    if storages:
        texts["StorageNear"] = _text(storages[0])
        texts["StoragesNear"] = _text(set(storages))
    room -= sum(len(f"{name} = {text}\n".encode()) for name, text in texts.items())
    room -= _AROUND_QUEUES
    if room < 0:
        return {}
    listed = _listed(pairs, room)
    texts["QueuesLeftOut"] = str(len(pairs) - len(listed))
    texts[QUEUES] = f"{{ {', '.join(listed)} }}"
    return texts


def _summed(
    pairs: Sequence[tuple[Queue, QueueFigures]], downtime: Downtime | None
) -> Iterator[tuple[str, Any]]:
    """Attributes of the site as a whole; those without a value are left out."""
    queues = [queue for queue, _ in pairs]
    yield "TotalSlots", sum(queue.max_pilots for queue in queues)
    yield "FreeSlots", sum(_free(*pair) for pair in pairs)
    yield "PilotsRunning", sum(figures.running for _, figures in pairs)
    yield "PilotsQueued", sum(figures.queued for _, figures in pairs)
    for name, column in (("Cpus", "cores"), ("Memory", "memory_mb"), ("Gpus", "gpus")):
        amounts = [getattr(queue, column) for queue in queues]
        yield f"Max{name}", max(amounts, default=0)
        yield (
            f"Total{name}",
            sum(amount * queue.max_pilots for amount, queue in zip(amounts, queues, strict=True)),
        )
        yield (
            f"Pilot{name}",
            sum(
                amount * figures.running
                for amount, (_, figures) in zip(amounts, pairs, strict=True)
            ),
        )
    yield "MaxCpuTime", max(map(fresh_cpu_time_s, queues), default=0)
    yield "Platforms", {queue.platform for queue in queues if queue.platform}
    yield "Tags", {tag for queue in queues for tag in queue.tags}
    yield "Software", {word for _, figures in pairs for word in figures.software}
    yield from _measured([figures for _, figures in pairs])
    if downtime is not None:
        yield "NextDowntime", _epoch(downtime.start)
        yield "NextDowntimeEnd", _epoch(downtime.end)


def _measured(figures: Sequence[QueueFigures]) -> Iterator[tuple[str, Any]]:
    """What pilots did lately; nothing where there were none."""
    starts = sum(each.starts for each in figures)
    if starts:
        waited = sum((each.waited for each in figures), timedelta())
        # Rounded, so that ads change only where something has.
        yield "MeanStartup", max(0, round(waited.total_seconds() / starts / 10) * 10)
    failed = sum(each.failed for each in figures)
    ended = failed + sum(each.done for each in figures)
    if ended:
        yield "FailureRate", round(failed / ended, 2)


def _listed(pairs: Sequence[tuple[Queue, QueueFigures]], room: int) -> list[str]:
    """Nested ads of the first queues by name, as many as there is room for."""
    ads: list[str] = []
    for queue, figures in pairs[:MOST_QUEUES]:
        fields = "; ".join(f"{name} = {_text(value)}" for name, value in _of_queue(queue, figures))
        ad = f"[ {fields} ]"
        room -= len(ad.encode()) + 2
        if room < 0:
            break
        ads.append(ad)
    return ads


def _of_queue(queue: Queue, figures: QueueFigures) -> Iterator[tuple[str, Any]]:
    yield "Name", queue.name
    yield "Cpus", queue.cores
    yield "Memory", queue.memory_mb
    yield "Gpus", queue.gpus
    yield "CpuTime", fresh_cpu_time_s(queue)
    yield "Platform", queue.platform
    yield "Setup", queue.setup
    yield "Tags", set(queue.tags)
    yield "RequiredTags", set(queue.required_tags)
    yield "Software", figures.software
    yield "TotalSlots", queue.max_pilots
    yield "FreeSlots", _free(queue, figures)
    yield "PilotsRunning", figures.running
    yield "PilotsQueued", figures.queued
    yield from _measured([figures])


def _free(queue: Queue, figures: QueueFigures) -> int:
    return max(0, queue.max_pilots - figures.running - figures.queued)


def _epoch(at: datetime) -> int:
    return int(at.timestamp())


def _text(value: Any) -> str:
    """Value as a ClassAd literal; of a set the first words, sorted."""
    if isinstance(value, set):
        words = sorted(str(word)[:_LONGEST_WORD] for word in value)[:MOST_WORDS]
        return f"{{ {', '.join(map(quote, words))} }}"
    return quote(value) if isinstance(value, str) else repr(value)

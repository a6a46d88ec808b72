"""What is free in pilots, and how many pilots jobs fill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Room:
    """What is free in a pilot, or what a job takes: of `time_s` the job needs that much left."""

    cores: int
    memory_mb: int = 0
    gpus: int = 0
    time_s: int = 0

    def holds(self, job: Room) -> int:
        """How many such jobs find place here, side by side; a job takes one core at least."""
        times = self.cores // job.cores if job.time_s <= self.time_s else 0
        if job.memory_mb:
            times = min(times, self.memory_mb // job.memory_mb)
        if job.gpus:
            times = min(times, self.gpus // job.gpus)
        return times

    def without(self, job: Room, times: int) -> Room:
        """What is left when so many such jobs are in."""
        return Room(
            self.cores - times * job.cores,
            self.memory_mb - times * job.memory_mb,
            self.gpus - times * job.gpus,
            self.time_s,
        )


def place(job: Room, jobs: int, free: Counter[Room]) -> int:
    """Put equal jobs into pilots, whose free rooms are counted in `free`; how many found place."""
    left = jobs
    for room, pilots in list(free.items()):
        each = room.holds(job)
        if not each or not left:
            continue
        full = min(pilots, left // each)
        _fill(free, room, job, each, pilots=full)
        left -= full * each
        if full < pilots and left:
            _fill(free, room, job, left, pilots=1)
            left = 0
    return jobs - left


def _fill(free: Counter[Room], room: Room, job: Room, times: int, *, pilots: int) -> None:
    free[room] -= pilots
    if not free[room]:
        del free[room]
    rest = room.without(job, times)
    if pilots and rest.cores:
        free[rest] += pilots


def pilots_for(jobs: Mapping[Room, int], pilot: Room) -> int:
    """How many fresh pilots these jobs fill, the large jobs first and the others in their gaps.

    Jobs that one pilot cannot hold are left out.
    """
    opened: Counter[Room] = Counter()
    pilots = 0
    for job, count in sorted(jobs.items(), key=lambda item: pilot.holds(item[0])):
        if not pilot.holds(job):
            continue
        left = count - place(job, count, opened)
        more = -(-left // pilot.holds(job))
        opened += Counter({pilot: more})
        place(job, left, opened)
        pilots += more
    return pilots

"""Packing of jobs into free resources of pilots, and number of new pilots that jobs fill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ResourceVector:
    """Free resources of a pilot, or those of a job, which needs `time_s` to be left."""

    cores: int
    memory_mb: int = 0
    gpus: int = 0
    time_s: int = 0

    def fit_count(self, job: ResourceVector) -> int:
        """Number of such jobs that fit here side by side; a job takes at least one core."""
        times = self.cores // job.cores if job.time_s <= self.time_s else 0
        if job.memory_mb:
            times = min(times, self.memory_mb // job.memory_mb)
        if job.gpus:
            times = min(times, self.gpus // job.gpus)
        return times

    def without(self, job: ResourceVector, times: int) -> ResourceVector:
        """Resources left when this many such jobs are running."""
        return ResourceVector(
            self.cores - times * job.cores,
            self.memory_mb - times * job.memory_mb,
            self.gpus - times * job.gpus,
            self.time_s,
        )


def pack_jobs(job: ResourceVector, jobs: int, free: Counter[ResourceVector]) -> int:
    """Put equal jobs into pilots, counted by free resources in `free`; the number that fit."""
    left = jobs
    for capacity, pilots in list(free.items()):
        each = capacity.fit_count(job)
        if not each or not left:
            continue
        full = min(pilots, left // each)
        _fill(free, capacity, job, each, pilots=full)
        left -= full * each
        if full < pilots and left:
            _fill(free, capacity, job, left, pilots=1)
            left = 0
    return jobs - left


def _fill(
    free: Counter[ResourceVector],
    capacity: ResourceVector,
    job: ResourceVector,
    times: int,
    *,
    pilots: int,
) -> None:
    free[capacity] -= pilots
    if not free[capacity]:
        del free[capacity]
    rest = capacity.without(job, times)
    if pilots and rest.cores:
        free[rest] += pilots


def pilots_for(jobs: Mapping[ResourceVector, int], pilot: ResourceVector) -> int:
    """Number of fresh pilots that these jobs fill, the large jobs first, others in the gaps.

    Jobs that do not fit into one pilot are left out.
    """
    opened: Counter[ResourceVector] = Counter()
    pilots = 0
    for job, count in sorted(jobs.items(), key=lambda item: pilot.fit_count(item[0])):
        if not pilot.fit_count(job):
            continue
        left = count - pack_jobs(job, count, opened)
        more = -(-left // pilot.fit_count(job))
        opened += Counter({pilot: more})
        pack_jobs(job, left, opened)
        pilots += more
    return pilots

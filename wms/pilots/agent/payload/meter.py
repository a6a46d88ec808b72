"""Meter of one payload: usage of its processes, files and output, measured now and then.

Also free space and free inodes of a disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..fence.base import Enclosure
from ..files.disk_usage import DiskUsageCounter
from ..resources import processes
from ..resources.limits import Limits
from ..resources.usage import Usage

_MB = 2**20
#: Largest part of the time that measurements take.
_PART_OF_TIME = 0.02
_SHORTEST_S = 0.1
_LONGEST_S = 2.0
#: Period of counting the files of a payload, if the free space does not say that it is urgent.
_FILES_EVERY_S = 10.0
#: Pause between counts, as a multiple of what the last one took.
_FILES_PART = 20
#: Longest count after the end.
_LAST_COUNT_S = 20.0


class Meter:
    """Measures the usage of one payload: its processes, its files, its output."""

    def __init__(self, enclosure: Enclosure, outputs: Sequence[Path], limits: Limits) -> None:
        self._enclosure = enclosure
        self._outputs = outputs
        self._limits = limits
        self._disk_counter = DiskUsageCounter(enclosure.entries, limits.files)
        self._counted_at_s = 0.0
        self._counted_free = Free()
        self._files_took_s = 0.0
        self.last = Usage()

    def measure(self, supervisor: int, wall_s: float, clock: Callable[[], float]) -> Usage:
        """Usage now; `supervisor` is the process above all of the payload's."""
        top, below = processes.tree_below(supervisor)
        cpu_s = sum(each.cpu_s + each.waited_s for each in below)
        if top is not None:
            cpu_s += top.waited_s
        pids = [each.pid for each in below]
        memory_mb, open_files = processes.memory_mb(pids)
        free = _free(self._enclosure.disk)
        self._count_files(pids, wall_s, free, clock)
        self.last = replace(
            self.last,
            wall_s=wall_s,
            # Between two looks a process may end unseen in the middle of being counted.
            cpu_s=max(cpu_s, self.last.cpu_s),
            memory_mb=memory_mb,
            peak_memory_mb=max(memory_mb, self.last.peak_memory_mb),
            open_files=open_files,
            disk_free_mb=free.mb,
            output_mb=self.output_mb(),
            processes=len(below),
            busy=sum(each.is_busy for each in below),
            # Not Path.exists(): the payload may have closed the folder to us.
            may_idle=os.path.exists(self._enclosure.directories.attributes_file),
        )
        return self.last

    def finish(self, wall_s: float, cpu_s: float) -> Usage:
        """Usage at the end, with the CPU time of all processes from the kernel."""
        disk = self._disk_counter.count(time.monotonic, _LAST_COUNT_S)
        self.last = replace(
            self.last,
            wall_s=wall_s,
            cpu_s=cpu_s,
            disk_mb=max(self.last.disk_mb, disk.mb + self.output_mb()),
            files=max(self.last.files, disk.files),
            output_mb=self.output_mb(),
        )
        return self.last

    def output_mb(self) -> float:
        """Size of stdout and stderr together."""
        return sum(_size_bytes(each) for each in self._outputs) / _MB

    def _count_files(
        self, pids: Sequence[int], wall_s: float, free: Free, clock: Callable[[], float]
    ) -> None:
        """Count its files again, or go on counting, if it is time."""
        pause_s = self._files_took_s * _FILES_PART
        if self._disk_counter.is_whole:
            pause_s = max(_FILES_EVERY_S, pause_s)
        is_due = wall_s - self._counted_at_s >= pause_s
        if not (is_due or self._is_urgent(free)):
            return
        began = clock()
        disk = self._disk_counter.count(clock)
        unlinked_mb = processes.unlinked_mb(pids, self._enclosure.disk)
        self._files_took_s = clock() - began
        self._counted_at_s = wall_s
        self._counted_free = free
        self.last = replace(
            self.last,
            # What it printed is on the same disk.
            disk_mb=disk.mb + self.output_mb() + unlinked_mb,
            files=disk.files,
            is_too_deep=disk.is_too_deep,
        )

    def _is_urgent(self, free: Free) -> bool:
        """Tell whether free space has shrunk by half of what the payload may still take."""
        before = self._counted_free
        if before.mb is None or free.mb is None:
            self._counted_free = free
            return False
        left_mb = free.mb
        if self._limits.disk_mb is not None:
            left_mb = min(left_mb, self._limits.disk_mb - self.last.disk_mb)
        if before.mb - free.mb > max(left_mb / 2, 1.0):
            return True
        if self._limits.files is None:
            return False
        left_files = self._limits.files - self.last.files
        return before.files - free.files > max(left_files / 2, 1000)


def next_measurement_s(wall_s: float, took_s: float) -> float:
    """Pause until the next measurement: short at first, so that short payloads are seen too."""
    return min(max(wall_s / 4, _SHORTEST_S, took_s / _PART_OF_TIME), _LONGEST_S)


@dataclass(frozen=True)
class Free:
    """Free space on a disk, and number of files that can be made; None, 0 where it is unknown."""

    mb: float | None = None
    files: int = 0


def _free(folder: Path) -> Free:
    try:
        status = os.statvfs(folder)
    except OSError:
        return Free()
    return Free(status.f_bavail * status.f_frsize / _MB, status.f_favail)


def _size_bytes(file: Path) -> int:
    try:
        return file.lstat().st_size
    except OSError:
        return 0

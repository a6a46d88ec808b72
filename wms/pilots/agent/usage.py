"""What a payload uses: looked at while it runs, and summed up at its end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import processes
from .fence import Enclosure

_MB = 2**20
#: A look takes at most this part of the time; between two looks it is not longer than the last.
_PART_OF_TIME = 0.02
_SHORTEST_S = 0.1
_LONGEST_S = 2.0
#: So often the files of a payload are counted, if the free space does not say that it is urgent.
_FILES_EVERY_S = 10.0


@dataclass(frozen=True)
class Usage:
    """What one payload has used up to a moment; its memory is that of the moment and the most."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    memory_mb: float = 0.0
    peak_memory_mb: float = 0.0
    disk_mb: float = 0.0
    disk_free_mb: float | None = None
    output_mb: float = 0.0
    processes: int = 0
    busy: int = 0
    may_idle: bool = False

    def as_told(self) -> dict[str, Any]:
        """What a heartbeat says of it."""
        return {
            "wall_s": round(self.wall_s, 3),
            "cpu_s": round(self.cpu_s, 3),
            "memory_mb": round(self.memory_mb, 1),
            "disk_mb": round(self.disk_mb, 1),
            "processes": self.processes,
        }


class Meter:
    """Looks at one payload now and then: its processes, its files, its output."""

    def __init__(
        self, enclosure: Enclosure, outputs: Sequence[Path], disk_limit_mb: float | None
    ) -> None:
        self._enclosure = enclosure
        self._outputs = outputs
        self._disk_limit_mb = disk_limit_mb
        self._counted_at_s = 0.0
        self._counted_free_mb: float | None = None
        self._files_took_s = 0.0
        self.last = Usage()

    def look(self, keeper: int, wall_s: float, clock: Callable[[], float]) -> Usage:
        """What is used now; `keeper` is the process above all of the payload's."""
        top, below = processes.tree_below(keeper)
        cpu_s = sum(each.cpu_s + each.waited_s for each in below)
        if top is not None:
            cpu_s += top.waited_s
        pids = [each.pid for each in below]
        memory_mb = processes.memory_mb(pids)
        free_mb = _free_mb(self._enclosure.disk)
        self.last = replace(
            self.last,
            wall_s=wall_s,
            # Between two looks a process may end unseen in the middle of being counted.
            cpu_s=max(cpu_s, self.last.cpu_s),
            memory_mb=memory_mb,
            peak_memory_mb=max(memory_mb, self.last.peak_memory_mb),
            disk_mb=self._disk_mb(pids, wall_s, free_mb, clock),
            disk_free_mb=free_mb,
            output_mb=self.output_mb(),
            processes=len(below),
            busy=sum(each.is_busy for each in below),
            # Not Path.exists(): the payload may have closed the folder to us.
            may_idle=os.path.exists(self._enclosure.room.attributes_file),
        )
        return self.last

    def finish(self, wall_s: float, cpu_s: float) -> Usage:
        """The last look, after the end: the kernel has told the time of all processes."""
        self.last = replace(
            self.last,
            wall_s=wall_s,
            cpu_s=cpu_s,
            disk_mb=max(self.last.disk_mb, self._files_mb()),
            output_mb=self.output_mb(),
        )
        return self.last

    def output_mb(self) -> float:
        """The size of stdout and stderr together."""
        return sum(_size_bytes(each) for each in self._outputs) / _MB

    def _disk_mb(
        self,
        pids: Sequence[int],
        wall_s: float,
        free_mb: float | None,
        clock: Callable[[], float],
    ) -> float:
        """The space that its files take: as last counted, or counted again if it is time."""
        is_due = wall_s - self._counted_at_s >= max(_FILES_EVERY_S, self._files_took_s * 20)
        if not (is_due or self._is_urgent(free_mb)):
            return self.last.disk_mb
        began = clock()
        used_mb = self._files_mb() + processes.unlinked_mb(pids, self._enclosure.disk)
        self._files_took_s = clock() - began
        self._counted_at_s = wall_s
        self._counted_free_mb = free_mb
        return used_mb

    def _files_mb(self) -> float:
        """What it printed is on the same disk."""
        return self._enclosure.count_files() + self.output_mb()

    def _is_urgent(self, free_mb: float | None) -> bool:
        """The free space has shrunk by half of what the payload may still take."""
        if self._counted_free_mb is None or free_mb is None:
            self._counted_free_mb = free_mb
            return False
        left_mb = free_mb
        if self._disk_limit_mb is not None:
            left_mb = min(left_mb, self._disk_limit_mb - self.last.disk_mb)
        return self._counted_free_mb - free_mb > max(left_mb / 2, 1.0)


def next_look_s(wall_s: float, took_s: float) -> float:
    """The pause until the next look: short at first, so that short payloads are seen too."""
    return min(max(wall_s / 4, _SHORTEST_S, took_s / _PART_OF_TIME), _LONGEST_S)


def _free_mb(folder: Path) -> float | None:
    try:
        return shutil.disk_usage(folder).free / _MB
    except OSError:
        return None


def _size_bytes(file: Path) -> int:
    try:
        return file.lstat().st_size
    except OSError:
        return 0

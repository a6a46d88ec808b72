"""Resource usage of one payload at a moment, as the meter measures and heartbeats report it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Usage:
    """Usage of one payload up to a moment; memory is that of the moment and the peak."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    memory_mb: float = 0.0
    peak_memory_mb: float = 0.0
    disk_mb: float = 0.0
    #: Files and folders.
    files: int = 0
    is_too_deep: bool = False
    #: Open files of all its processes, as far as they were counted.
    open_files: int = 0
    disk_free_mb: float | None = None
    output_mb: float = 0.0
    processes: int = 0
    busy: int = 0
    may_idle: bool = False

    def to_json(self) -> dict[str, Any]:
        """Usage as a heartbeat sends it."""
        return {
            "wall_s": round(self.wall_s, 3),
            "cpu_s": round(self.cpu_s, 3),
            "memory_mb": round(self.memory_mb, 1),
            "disk_mb": round(self.disk_mb, 1),
            "files": self.files,
            "processes": self.processes,
        }

"""Resource limits of one payload: what its queue sets, narrowed by what its job asks for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Limits:
    """Limits of a payload; None: no limit. Times in seconds, amounts in MB (2^20 bytes)."""

    #: From the start of the payload.
    wall_s: float | None = None
    #: CPU time of all its processes together.
    cpu_s: float | None = None
    memory_mb: float | None = None
    #: In its directory and its directories for temporary files.
    disk_mb: float | None = None
    #: Files and folders there.
    files: float | None = 100_000
    #: Size of stdout and stderr together.
    output_mb: float | None = 1024.0
    #: Size of all announced outputs together that are sent.
    output_sandbox_mb: float | None = 10_240.0
    processes: float | None = 4096
    #: Processes that run or wait for a disk, averaged over a minute.
    load: float | None = 256.0
    #: CPU time by wall time below `progress_ratio` for `progress_s` is no progress; 0: ignored.
    progress_ratio: float = 0.005
    progress_s: float = 7200.0
    #: From the polite signal to the hard one.
    grace_s: float = 10.0

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Limits:
        """Limits that a queue sets, 0 for none; what is no number is ignored."""
        names = [each.name for each in fields(cls) if _is_limit(settings.get(each.name))]
        known: dict[str, Any] = {name: settings[name] or _NONE.get(name) for name in names}
        return cls(**known)

    def narrowed(
        self,
        *,
        wall_s: float | None = None,
        cpu_s: float | None = None,
        memory_mb: float | None = None,
        disk_mb: float | None = None,
        grace_s: float = 0.0,
    ) -> Limits:
        """These limits, or a job's own where those are lower; a job's 0 MB or 0 s is no limit."""
        return replace(
            self,
            wall_s=_lower(self.wall_s, wall_s),
            cpu_s=_lower(self.cpu_s, cpu_s or None),
            memory_mb=_lower(self.memory_mb, memory_mb or None),
            disk_mb=_lower(self.disk_mb, disk_mb or None),
            grace_s=min(self.grace_s, grace_s or self.grace_s),
        )


#: Values for a 0 that does not mean "no limit".
_NONE = {"progress_ratio": 0.0, "progress_s": 0.0, "grace_s": 0.0}


def _is_limit(value: object) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return math.isfinite(value) and value >= 0


def _lower(one: float | None, other: float | None) -> float | None:
    given = [each for each in (one, other) if each is not None]
    return min(given, default=None)

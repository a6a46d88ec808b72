"""Watchdog over one payload: the reason to stop it when its usage exceeds its limits."""

from __future__ import annotations

import math
from collections import deque

from ..files.disk_usage import MOST_FILES
from .limits import Limits
from .processes import MOST_OPEN_FILES
from .usage import Usage

#: Below this much free space on the node's disk those payloads are stopped that use more than that.
LEAST_FREE_DISK_MB = 50


class Watchdog:
    """Compares the usage of one payload with its limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._files = min(MOST_FILES, MOST_FILES if limits.files is None else limits.files)
        self._load = 0.0
        self._last_s = 0.0
        # CPU time by wall time, for `progress_s` back.
        self._past: deque[tuple[float, float]] = deque([(0.0, 0.0)])

    def why_stop(self, seen: Usage) -> str:
        """Reason to stop the payload; empty if there is none."""
        self._average_load(seen)
        self._remember(seen)
        return (
            self._out_of_time(seen)
            or self._over("CPU time", seen.cpu_s, self._limits.cpu_s, "s")
            or self._over("memory", seen.memory_mb, self._limits.memory_mb, "MB")
            or self._over("disk space", seen.disk_mb, self._limits.disk_mb, "MB")
            or self._over("files", seen.files, self._files, "")
            or self._beyond_counting(seen)
            or self._over("stdout and stderr", seen.output_mb, self._limits.output_mb, "MB")
            or self._over("processes", seen.processes, self._limits.processes, "")
            or self._over("load", self._load, self._limits.load, "")
            or self._fills_the_disk(seen)
            or self._makes_no_progress(seen)
        )

    def _out_of_time(self, seen: Usage) -> str:
        limit_s = self._limits.wall_s
        if limit_s is None or seen.wall_s < limit_s:
            return ""
        return f"wall-clock limit of {limit_s:g} s exceeded: it ran for {_short(seen.wall_s)} s"

    @staticmethod
    def _over(what: str, used: float, limit: float | None, unit: str) -> str:
        if limit is None or used <= limit:
            return ""
        space = " " if unit else ""
        return f"{what} over its limit: {_short(used)}{space}{unit} of {limit:g}{space}{unit}"

    @staticmethod
    def _beyond_counting(seen: Usage) -> str:
        """Reason where usage cannot be measured: folders too deep, too many open files."""
        if seen.is_too_deep:
            return "folders over their limit: they are nested deeper than a path can name"
        if seen.open_files > MOST_OPEN_FILES:
            return f"open files over their limit: more than {MOST_OPEN_FILES}"
        return ""

    def _average_load(self, seen: Usage) -> None:
        passed_s = max(0.0, seen.wall_s - self._last_s)
        weight = 1.0 - math.exp(-passed_s / 60.0)
        self._load += (seen.busy - self._load) * weight
        self._last_s = seen.wall_s

    def _fills_the_disk(self, seen: Usage) -> str:
        free = seen.disk_free_mb
        if free is None or free >= LEAST_FREE_DISK_MB or seen.disk_mb < LEAST_FREE_DISK_MB:
            return ""
        return (
            f"the node's disk is nearly full: {free:.0f} MB are free, this job uses "
            f"{seen.disk_mb:.0f} MB"
        )

    def _remember(self, seen: Usage) -> None:
        self._past.append((seen.wall_s, seen.cpu_s))
        while len(self._past) > 1 and self._past[1][0] <= seen.wall_s - self._limits.progress_s:
            self._past.popleft()

    def _makes_no_progress(self, seen: Usage) -> str:
        limits = self._limits
        since_s, cpu_s = self._past[0]
        lasted_s = seen.wall_s - since_s
        if seen.may_idle or not limits.progress_ratio or lasted_s < limits.progress_s:
            return ""
        ratio = (seen.cpu_s - cpu_s) / lasted_s if lasted_s else 1.0
        if ratio >= limits.progress_ratio:
            return ""
        return (
            f"no progress: {_short(seen.cpu_s - cpu_s)} s of CPU time in the last {lasted_s:.0f} s "
            f"are {ratio:.1%}, the limit is {limits.progress_ratio:.1%}"
        )


def _short(value: float) -> str:
    return f"{value:.1f}" if isinstance(value, float) and value < 100 else f"{value:.0f}"

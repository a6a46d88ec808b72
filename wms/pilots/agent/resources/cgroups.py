"""Control groups (cgroups v2) that limit memory and processes of payloads, where possible.

Possible is where the batch system delegated to us a part of the tree of version 2, which this
account may change and in which the controllers are at hand. Elsewhere the watchdog has to do.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .limits import Limits

_ROOTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
_CONTROLLERS = ("memory", "pids")

log = logging.getLogger("pilot")


@dataclass(frozen=True)
class Group:
    """Control group of one payload; with an empty path it has none."""

    path: str
    limits: Limits

    def why_killed(self) -> str:
        """Reason why the kernel has killed the payload, if it has."""
        if not self.path:
            return ""
        events = _numbers(Path(self.path, "memory.events"))
        if not events.get("oom_kill"):
            return ""
        return f"memory over its limit of {self.limits.memory_mb:g} MB: ended by the kernel"


def _numbers(file: Path) -> dict[str, int]:
    try:
        pairs = [line.split() for line in file.read_text().splitlines()]
        return {name: int(value) for name, value in pairs}
    except (OSError, ValueError):
        return {}


class Cgroups:
    """Control groups of one pilot. `base` is the group that was delegated to it, if any."""

    def __init__(self, base: Path | None) -> None:
        self._base = base
        self._controllers: frozenset[str] = frozenset()

    def set_up(self) -> None:
        """Prepare the payloads' groups; without a base that can be used, none are made.

        A group with groups below it must hold no process itself, so the pilot moves down.
        """
        if self._base is None:
            return
        try:
            own = self._base / "pilot"
            own.mkdir(exist_ok=True)
            for pid in (self._base / "cgroup.procs").read_text().split():
                (own / "cgroup.procs").write_text(pid)
            there = (self._base / "cgroup.controllers").read_text().split()
            wanted = [each for each in _CONTROLLERS if each in there]
            (self._base / "cgroup.subtree_control").write_text(
                " ".join(f"+{each}" for each in wanted)
            )
            self._controllers = frozenset(wanted)
        except OSError as error:
            log.warning("the control group %s cannot be used: %s", self._base, error)
            self._base = None
        else:
            log.info("payloads get control groups, with limits of: %s", " ".join(wanted) or "none")

    @contextlib.contextmanager
    def group(self, name: str, limits: Limits) -> Iterator[Group]:
        """Group for one payload, removed afterwards; one without a path where there is none."""
        if self._base is None:
            yield Group("", limits)
            return
        group = self._base / name
        group.mkdir()
        try:
            self._limit(group, limits)
            yield Group(str(group), limits)
        finally:
            with contextlib.suppress(OSError):
                group.rmdir()

    def _limit(self, group: Path, limits: Limits) -> None:
        if "memory" in self._controllers and limits.memory_mb is not None:
            (group / "memory.max").write_text(str(int(limits.memory_mb * 2**20)))
            with contextlib.suppress(OSError):
                (group / "memory.swap.max").write_text("0")
            # All of a payload or nothing: half of one computes rubbish.
            (group / "memory.oom.group").write_text("1")
        if "pids" in self._controllers and limits.processes is not None:
            (group / "pids.max").write_text(str(int(limits.processes)))


def own_group() -> Path | None:
    """Group of this process, if it is ours to change; never the top of the tree."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    name = next((line[3:] for line in lines if line.startswith("0::")), "/").strip("/")
    for root in _ROOTS:
        group = Path(root, name)
        if name and os.access(group / "cgroup.procs", os.W_OK) and os.access(group, os.W_OK):
            return group
    return None

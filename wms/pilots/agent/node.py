"""Facts of the worker node (CPUs, memory, disk, platform, load), and shares of it.

A share belongs to this pilot (its slot), to a job, or is free.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import __version__

_MB = 1024 * 1024


def describe_node(work_dir: Path, slot: Share) -> dict[str, Any]:
    """Facts of the whole node and of the slot, as sent when the pilot registers."""
    return {
        "hostname": socket.gethostname(),
        "platform": platform_name(),
        "cores": usable_cores(),
        "memory_mb": total_memory_mb(),
        "disk_mb": slot.disk_mb,
        "slot_cores": slot.cores,
        "slot_memory_mb": slot.memory_mb,
        "slot_gpus": slot.gpus,
        "python": platform.python_version(),
        "agent_version": __version__,
    }


def platform_name() -> str:
    """System and architecture, for example `linux-x86_64`."""
    return f"{platform.system()}-{platform.machine()}".lower()


def usable_cores() -> int:
    """Number of CPUs that this process may run on."""
    return len(os.sched_getaffinity(0))


def total_memory_mb() -> int:
    """Memory of the node."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MB


def available_memory_mb() -> int:
    """Memory of the node that can be had without swapping."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) // 1024
    return total_memory_mb()


def free_disk_mb(work_dir: Path) -> int:
    """Free space on the disk where jobs run."""
    return shutil.disk_usage(work_dir).free // _MB


@dataclass(frozen=True)
class Share:
    """Cores, memory, GPUs and disk: of the slot, of a job, or what is free."""

    cores: int
    memory_mb: int
    gpus: int
    disk_mb: int = 0

    def minus(self, others: Iterable[Share]) -> Share:
        """Remainder when others have their part; never less than nothing."""
        taken = list(others)
        return Share(
            cores=max(0, self.cores - sum(each.cores for each in taken)),
            memory_mb=max(0, self.memory_mb - sum(each.memory_mb for each in taken)),
            gpus=max(0, self.gpus - sum(each.gpus for each in taken)),
            disk_mb=max(0, self.disk_mb - sum(each.disk_mb for each in taken)),
        )


def slot(environment: Mapping[str, str], work_dir: Path) -> Share:
    """Share of this pilot: the slot that the batch system gave, or else the whole node.

    Where no disk is given it is what is free where jobs run, when the pilot starts. GPUs are only
    those that the batch system gave: the node's may be somebody else's.
    """
    return Share(
        cores=_number(environment, "PILOTAGE_CORES", usable_cores()),
        memory_mb=_number(environment, "PILOTAGE_MEMORY_MB", total_memory_mb()),
        gpus=_number(environment, "PILOTAGE_GPUS", 0),
        disk_mb=_number(environment, "PILOTAGE_DISK_MB", free_disk_mb(work_dir)),
    )


def load(work_dir: Path) -> dict[str, float]:
    """Load, free memory and free disk, as sent with every heartbeat."""
    return {
        "load_1min": os.getloadavg()[0],
        "memory_free_mb": available_memory_mb(),
        "disk_free_mb": free_disk_mb(work_dir),
    }


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "")
    return int(text) if text.isdigit() and int(text) > 0 else default

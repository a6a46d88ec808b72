"""Storage of the counts of processes: files of one folder that all processes of a host share.

Without a folder each process keeps its own. Has to be imported before any metric is made; every
metric of a process comes from `portal.metrics.counts`, which does so.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

from django.conf import settings
from prometheus_client import CollectorRegistry, values
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector

#: Room of each file: that of the counts of all addresses that a portal is usually asked for.
_ROOM_BYTES = 512 * 1024


class AllocatedDict(MmapedDict):
    """File of counts that has its blocks before it is mapped into memory.

    A process that writes into a mapped hole of a file dies of a full disk (SIGBUS). Here making
    the file fails instead, with an OSError, and the process goes on uncounted.
    """

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        if not read_mode and not os.path.exists(filename):
            _allocate(filename)
        super().__init__(filename, read_mode)


def _allocate(filename: str) -> None:
    """Make a file of zeros, under its name once it is whole: others read the folder meanwhile."""
    begun = f"{filename}.begun"
    try:
        with open(begun, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, _ROOM_BYTES)
        os.replace(begun, filename)
    except OSError:
        Path(begun).unlink(missing_ok=True)
        raise


def process_name() -> str:
    """Name of this process that no other one has, on whatever host, while it runs."""
    # The library takes a file's name apart at the underscores.
    return f"{socket.gethostname().replace('_', '-')}-{os.getpid()}"


def keep_in(folder: str) -> None:
    """Folder of all metrics that are made from now on; it is made."""
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    values.MmapedDict = AllocatedDict
    values.ValueClass = values.MultiProcessValue(process_name)


def registry_of_all(own: CollectorRegistry) -> CollectorRegistry:
    """Registry of the counts of all processes that share the folder; without one, this process's.

    A process that ended leaves its counts, so that no sum goes down.
    """
    if not settings.METRICS_DIR:
        return own
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=settings.METRICS_DIR)
    return registry

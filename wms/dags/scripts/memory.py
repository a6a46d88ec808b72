"""Processes of a running script, read from `/proc`: the memory that they use, and their work."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from pathlib import Path
from typing import Final

# Not what is mapped from files, as programs and libraries are: the kernel can drop it at any time.
_COUNTED: Final = (b"RssAnon:", b"RssShmem:", b"VmSwap:")
_MOVED: Final = (b"rchar:", b"wchar:")
_UNNAMED: Final = "/memfd:"
_BLOCK_BYTES = 512


def processes_of(root: int, uid: int | None) -> list[int]:
    """Ids of all processes below a process, and of those of the script's own account."""
    children: dict[int, list[int]] = {}
    pids: set[int] = set()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            stat = Path(entry.path, "stat").read_bytes().rpartition(b")")[2].split()
            children.setdefault(int(stat[1]), []).append(int(entry.name))
            if uid is not None and entry.stat().st_uid == uid:
                pids.add(int(entry.name))
    unseen = [root]
    while unseen:
        pid = unseen.pop()
        pids.add(pid)
        unseen += children.get(pid, [])
    # The launcher and the fence are not the script's.
    return sorted(pids - {root})


def memory_mb(pids: Collection[int]) -> float:
    """Memory of these processes in MB: private, shared, and files without a name.

    Shared memory counts for each process that has touched it, a file once.
    """
    files: dict[tuple[int, int], int] = {}
    for pid in pids:
        files |= _unnamed_files(pid)
    return sum(map(_resident_kb, pids)) / 2**10 + sum(files.values()) / 2**20


def _resident_kb(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(_COUNTED))
    return 0


def _unnamed_files(pid: int) -> dict[tuple[int, int], int]:
    """Sizes of files in memory that a process has open, mapped or not."""
    sizes = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(entry.path).startswith(_UNNAMED):
                    status = os.stat(entry.path)
                    sizes[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK_BYTES
    return sizes


def activity(pids: Collection[int]) -> int:
    """Number that changes with whatever these processes read, write or compute."""
    return sum(map(_moved_bytes, pids)) + sum(map(_ticks, pids))


def _moved_bytes(pid: int) -> int:
    """Bytes of files and pipes; none where this host lets us not see those of other accounts."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path(f"/proc/{pid}/io").read_bytes().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(_MOVED))
    return 0


def _ticks(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(stat[11]) + int(stat[12])
    return 0

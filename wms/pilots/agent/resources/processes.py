"""Processes of a payload read from /proc: tree, CPU time, memory, open unlinked files.

Also the end of all processes of a session.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
_BLOCK_BYTES = 512
_ROUND_S = 0.01
_ROUNDS = 300
#: A payload may hold as many open files at a time: more could not be looked at in good time.
MOST_OPEN_FILES = 200_000
_UNNAMED = "/memfd:"
_UNLINKED = " (deleted)"
# Fields of /proc/PID/stat, counted from the state, which is the first after the name.
_STATE, _PARENT, _CPU, _CHILDREN_CPU = 0, 1, slice(11, 13), slice(13, 15)
_BUSY = (b"R", b"D")


@dataclass(frozen=True)
class Process:
    """One process as /proc shows it; `waited_s` is the CPU time of its ended children."""

    pid: int
    parent: int
    is_busy: bool
    cpu_s: float
    waited_s: float


def tree_below(root: int) -> tuple[Process | None, list[Process]]:
    """A process, and all processes below it."""
    children: dict[int, list[Process]] = {}
    top = None
    for name in os.listdir("/proc"):
        process = _read(name) if name.isdigit() else None
        if process is not None:
            children.setdefault(process.parent, []).append(process)
            top = process if process.pid == root else top
    below: list[Process] = []
    level = list(children.get(root, ()))
    while level:
        below += level
        level = [below for each in level for below in children.get(each.pid, ())]
    return top, below


def _read(pid: str) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return Process(
            pid=int(pid),
            parent=int(fields[_PARENT]),
            is_busy=fields[_STATE] in _BUSY,
            cpu_s=sum(map(int, fields[_CPU])) / _TICKS,
            waited_s=sum(map(int, fields[_CHILDREN_CPU])) / _TICKS,
        )
    except (OSError, ValueError, IndexError):
        return None


def end_session(leader: int) -> None:
    """Kill all processes of a session; those that have ended may stay listed for a while."""
    for _ in range(_ROUNDS):
        killed = [pid for pid in _pids() if _session(pid) == leader and _kill(pid)]
        if not killed:
            return
        time.sleep(_ROUND_S)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def memory_mb(pids: Sequence[int]) -> tuple[float, int]:
    """Memory of these processes together, with unnamed memory files; shared memory counts once.

    The second number is how many open files were looked at for them. Where the kernel does not give
    us the shares of another account's process, what is its own alone counts.
    """
    files: dict[tuple[int, int], int] = {}
    seen = 0
    for path in _open_files(pids):
        seen += 1
        with contextlib.suppress(OSError):
            if os.readlink(path).startswith(_UNNAMED):
                status = os.stat(path)
                files[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK_BYTES
    total_kb = sum(map(_proportional_kb, pids))
    return total_kb / 1024 + sum(files.values()) / 2**20, seen


def _open_files(pids: Iterable[int]) -> Iterator[str]:
    """Open files of processes by their names in /proc, up to one more than may be."""
    left = MOST_OPEN_FILES + 1
    for pid in pids:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                if not left:
                    return
                left -= 1
                yield entry.path


def _proportional_kb(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            lines = file.read().splitlines()
        return sum(
            int(line.split()[1]) for line in lines if line.startswith((b"Pss:", b"SwapPss:"))
        )
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/statm", "rb") as file:
            resident, shared = file.read().split()[1:3]
        return (int(resident) - int(shared)) * _PAGE_KB
    return 0


def unlinked_mb(pids: Iterable[int], folder: Path) -> float:
    """Size of unlinked files on the disk of a folder that these processes hold open."""
    files: dict[int, int] = {}
    try:
        device = os.stat(folder).st_dev
    except OSError:
        return 0.0
    for path in _open_files(pids):
        with contextlib.suppress(OSError):
            # Asked for the name first: of a file on a server that is away no status comes.
            if os.readlink(path).endswith(_UNLINKED):
                status = os.stat(path)
                if status.st_dev == device:
                    files[status.st_ino] = status.st_blocks * _BLOCK_BYTES
    return sum(files.values()) / 2**20

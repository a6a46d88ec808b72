"""Cleanup of host pilots: ends all of an installation, when the installation itself ends.

By SIGTERM, and after a grace by SIGKILL.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """Number of pilots that ended after SIGTERM, and that needed SIGKILL."""

    by_term: int
    by_kill: int


def end_host_pilots(root: Path, *, grace_s: float = 12.0) -> CleanupResult:
    """End all pilots that `HostElement`s keep under `root`, and return when they are gone.

    Marks each as cancelled first, so that one which is just starting ends by itself.
    """
    directories = [born.parent for born in root.rglob("born")]
    for directory in directories:
        (directory / "cancel").touch(mode=0o600)
    leaders = {pid for directory in directories if (pid := _leader(directory)) is not None}
    _signal_groups(leaders, signal.SIGTERM)
    stubborn = _wait(leaders, grace_s)
    _signal_groups(stubborn, signal.SIGKILL)
    _wait(stubborn, grace_s)
    return CleanupResult(by_term=len(leaders) - len(stubborn), by_kill=len(stubborn))


def _leader(directory: Path) -> int | None:
    """Return the pid of the living session leader of a pilot directory."""
    try:
        pid, start = (directory / "pid").read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    fields = _stat(int(pid))
    return int(pid) if fields and fields[0] != "Z" and fields[19] == start else None


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on, empty if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()


def _is_group_alive(pgid: int) -> bool:
    """Tell whether any process that is not a zombie is left in the group."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        fields = _stat(int(entry.name))
        if fields and fields[0] != "Z" and fields[2] == str(pgid):
            return True
    return False


def _signal_groups(leaders: set[int], number: signal.Signals) -> None:
    for pid in leaders:
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            continue


def _wait(leaders: set[int], limit_s: float) -> set[int]:
    """Wait until the groups are empty and return those that are not when the time is over."""
    deadline = time.monotonic() + limit_s
    left = {pid for pid in leaders if _is_group_alive(pid)}
    while left and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        left = {pid for pid in left if _is_group_alive(pid)}
    return left

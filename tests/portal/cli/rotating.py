"""Rotation of a log, as programs do it: the file is renamed, or copied and emptied."""

from __future__ import annotations

import shutil
from pathlib import Path


def rotate(log: Path, how: str = "rename") -> None:
    """Make `LOG.1` of the log, `LOG.2` of the one before, and so on; an empty one stays."""
    if not log.exists() or not log.stat().st_size:
        return
    for number in range(20, 0, -1):
        old = log.with_name(f"{log.name}.{number}")
        if old.exists():
            old.rename(log.with_name(f"{log.name}.{number + 1}"))
    if how == "rename":
        log.rename(log.with_name(f"{log.name}.1"))
    else:
        shutil.copy(log, log.with_name(f"{log.name}.1"))
        log.write_bytes(b"")

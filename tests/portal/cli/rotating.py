"""Rotation of a log, as programs do it: the file is renamed, or copied and emptied; and packed."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path


def rotate(log: Path, how: str = "rename") -> None:
    """Make `LOG.1` of the log, `LOG.2` of the one before, and so on; an empty one stays."""
    if not log.exists() or not log.stat().st_size:
        return
    for number in range(20, 0, -1):
        for packed in ("", ".gz"):
            old = log.with_name(f"{log.name}.{number}{packed}")
            if old.exists():
                old.rename(log.with_name(f"{log.name}.{number + 1}{packed}"))
    if how == "rename":
        log.rename(log.with_name(f"{log.name}.1"))
    else:
        shutil.copy(log, log.with_name(f"{log.name}.1"))
        log.write_bytes(b"")


def pack(log: Path, *, is_cut: bool = False) -> None:
    """Pack the rotated files of the log; `is_cut` is the moment before the plain ones are gone."""
    for plain in log.parent.glob(f"{log.name}.*"):
        if not plain.suffix[1:].isdigit():
            continue
        content = gzip.compress(plain.read_bytes())
        packed = plain.with_name(plain.name + ".gz")
        packed.write_bytes(content[: len(content) // 2] if is_cut else content)
        if not is_cut:
            plain.unlink()

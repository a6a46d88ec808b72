"""The directory of one job: what comes in, what goes out, and that both stay inside."""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath
from typing import BinaryIO

#: Of a longer stdout or stderr the beginning and the end are sent.
LOG_LIMIT_BYTES = 10 * 1024 * 1024

_CHUNK = 256 * 1024


class BadPath(Exception):
    """A path that would leave the job's directory, or that cannot exist in it."""


def inside(directory: Path, path: str) -> Path:
    """Return `path` within `directory`; raise `BadPath` if it would leave it.

    Links are followed first: the payload may have laid some.
    """
    pure = PurePosixPath(path)
    if not path or "\0" in path or pure.is_absolute() or ".." in pure.parts:
        raise BadPath(f"{path!r} is not a relative path within the job's directory")
    # Not Path.resolve(): it raises RuntimeError for a circle of links.
    root = Path(os.path.realpath(directory))
    target = Path(os.path.realpath(root / pure))
    if target == root or root not in target.parents:
        raise BadPath(f"{path!r} leads out of the job's directory")
    return target


def locate_executable(directory: Path, executable: str) -> str:
    """Return the file to execute: absolute paths as they are, others from the sandbox."""
    if PurePosixPath(executable).is_absolute():
        return executable
    target = inside(directory, executable)
    if target.is_file():
        target.chmod(target.stat().st_mode | 0o700)
    return str(target)


def find_output(directory: Path, path: str) -> Path | None:
    """Return the output file, or None if the payload has not left a regular file there."""
    try:
        target = inside(directory, path)
        return target if target.is_file() else None
    except (BadPath, OSError):
        return None


def bounded_log(log: Path) -> Path:
    """Return a file of at most about `LOG_LIMIT_BYTES` with the beginning and the end of `log`."""
    size = log.stat().st_size
    if size <= LOG_LIMIT_BYTES:
        return log
    half = LOG_LIMIT_BYTES // 2
    short = log.with_name(log.name + ".short")
    with log.open("rb") as source, short.open("wb") as sink:
        _copy_bytes(source, sink, half)
        sink.write(f"\n[... pilot: {size - 2 * half} bytes left out here ...]\n".encode())
        source.seek(size - half)
        _copy_bytes(source, sink, half)
    return short


def remove(directory: Path) -> None:
    """Remove a directory with all that is in it, also what the payload made read-only."""
    for parent, _, _ in os.walk(directory):
        try:
            os.chmod(parent, 0o700)
        except OSError:
            continue
    shutil.rmtree(directory, ignore_errors=True)


def _copy_bytes(source: BinaryIO, sink: BinaryIO, count: int) -> None:
    while count > 0:
        piece = source.read(min(count, _CHUNK))
        if not piece:
            return
        sink.write(piece)
        count -= len(piece)

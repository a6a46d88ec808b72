"""Disk of one MiB: a file system in memory where this account may mount one, else a limit."""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DISK_BYTES = 2**20
_NO_DEVICES, _NO_PROGRAMS = 4, 8
_DETACH = 2


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Disk of a MiB in place of an empty folder or, at worst, a MiB for any file.

    Whether it is the folder: another process would write into the other files.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    place = os.fsencode(folder)
    size = f"size={DISK_BYTES}".encode()
    if libc.mount(b"tmpfs", place, b"tmpfs", _NO_DEVICES | _NO_PROGRAMS, size) == 0:
        try:
            yield True
        finally:
            libc.umount2(place, _DETACH)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (DISK_BYTES, hard))
    try:
        yield False
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

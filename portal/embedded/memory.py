"""Folders in memory, for data of servers that live no longer than a command or a test run.

Files come and go in a database, and a file system on a disk takes most of its time for that.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_PREFIX = "pilotage-"


def short_lived_folder(*, room_bytes: int) -> Path:
    """A new folder in memory where that much is free there, else among the temporary files.

    Its maker removes it. Those of makers that were killed before are removed now.
    """
    if not os.access(_MEMORY, os.W_OK) or shutil.disk_usage(_MEMORY).free < room_bytes:
        return Path(tempfile.mkdtemp(prefix=_PREFIX))
    for left in _MEMORY.glob(f"{_PREFIX}*-*"):
        maker = left.name.split("-")[1]
        if maker.isdecimal() and not Path("/proc", maker).exists():
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=_MEMORY))

"""Slots for scripts on this host: folders with a lock, for one script at a time each.

The lock ends with the process that uses the slot. Where root runs the service every slot has an
account of its own, and only this account can enter the folder, so that scripts that run at once
cannot touch one another. The account is the same for all scripts that use the slot in turn: nothing
of one is left for the next.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wms.core.errors import PilotageError
from wms.dags.scripts.trees import remove_tree

#: More are never used: the accounts of the last ones would be those of others.
MOST_SLOTS: Final = 500
_PRIVATE = 0o700
#: Others may pass through, to folders whose names they know, and not look around.
_PASSABLE = 0o711
_PASSABLE_FOR_ITS_GROUP = 0o710


class NoSlot(PilotageError):
    """No slot is available to run a script."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Folder for one script; `uid` is the account of its scripts, if they have one."""

    number: int
    folder: Path
    uid: int | None

    @property
    def tmp(self) -> Path:
        return self.folder / "tmp"

    @property
    def shm(self) -> Path:
        return self.folder / "shm"

    @property
    def files(self) -> Path:
        """Copy of a workspace in which the script works."""
        return self.folder / "files"

    @property
    def index(self) -> Path:
        """Index of the copy, as it was left."""
        return self.folder / "index.json"

    @property
    def mark(self) -> Path:
        """File that exists from the start of a script to the record of its end."""
        return self.folder / "in-use"

    def clean_up(self) -> None:
        """Remove everything that the last process to use the slot may have left."""
        if self.uid is not None:
            # Folders of before may be open to others, or belong to another range of accounts.
            os.chown(self.folder, -1, self.uid, follow_symlinks=False)
            self.folder.chmod(_PASSABLE_FOR_ITS_GROUP)
            if self.mark.exists():
                _end_processes(self.uid)
        known = {self.files, self.index, self.mark}
        for each in list(self.folder.iterdir()):
            if each not in known:
                remove_tree(each)
        self.make_temporary_folders()

    def make_temporary_folders(self) -> None:
        """Create empty folders for temporary files."""
        for folder in (self.tmp, self.shm):
            remove_tree(folder)
            folder.mkdir(mode=_PRIVATE)
            self.give_to_account(folder)

    def give_to_account(self, path: Path) -> None:
        """Make the scripts' account the owner."""
        if self.uid is not None:
            os.chown(path, self.uid, self.uid, follow_symlinks=False)


def _end_processes(uid: int) -> None:
    """Kill processes of a script that outlived its service and its launcher."""
    subprocess.run(
        ["/bin/sh", "-c", "kill -9 -1"],
        user=uid, group=uid, extra_groups=(), cwd="/", env={},
        stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip


@contextmanager
def acquired_slot(base: Path, *, first_uid: int) -> Iterator[Slot]:
    """First free slot, locked until the block ends. Raises NoSlot."""
    uid_of = (lambda number: first_uid + number) if os.geteuid() == 0 else lambda _: None
    make_folder(base)
    for number in range(MOST_SLOTS):
        lock = os.open(base / f"{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _is_locked_now(lock):
                continue
            slot = Slot(number, make_folder(base / str(number)), uid_of(number))
            slot.clean_up()
            yield slot
            return
        finally:
            os.close(lock)
    raise NoSlot(f"All {MOST_SLOTS} places for scripts on this host are taken.")


def _is_locked_now(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def make_folder(path: Path) -> Path:
    """Folder of this account, created if it is missing. Raises NoSlot if others can change it.

    It may lie in a folder where everybody writes: somebody else could have made it before.
    """
    mode = _PASSABLE if os.geteuid() == 0 else _PRIVATE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=mode)
        path.chmod(mode)
    except FileExistsError:
        pass
    except OSError as error:
        raise NoSlot(f"{path}: {error.strerror}") from None
    status = path.lstat()
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    if not is_ours or status.st_mode & 0o022:
        raise NoSlot(f"{path} is no folder of this account alone; remove it.")
    return path

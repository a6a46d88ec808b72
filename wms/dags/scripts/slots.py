"""The places on this host where scripts run: one script at a time in each.

A slot is a folder, locked by the process that uses it; the lock ends with the process. Where root
runs the service every slot has an account of its own, so that scripts that run at once cannot touch
one another.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wms.core.errors import PilotageError

#: More are never used: the accounts of the last ones would be those of others.
MOST_SLOTS: Final = 500
_PRIVATE = 0o700
#: Others may pass through, to folders whose names they know, and not look around.
_PASSABLE = 0o711


class NoSlot(PilotageError):
    """There is no place to run a script."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one script; `uid` is the account of the scripts in it, if they have one."""

    number: int
    folder: Path
    uid: int | None

    @property
    def tmp(self) -> Path:
        return self.folder / "tmp"

    @property
    def shm(self) -> Path:
        return self.folder / "shm"

    def make_room(self) -> None:
        """Give the next script empty folders for temporary files."""
        for folder in (self.tmp, self.shm):
            remove_tree(folder)
            folder.mkdir(mode=_PRIVATE)
            self.give(folder)

    def give(self, path: Path) -> None:
        """Make the scripts' account the owner."""
        if self.uid is not None:
            os.chown(path, self.uid, self.uid, follow_symlinks=False)


@contextmanager
def held_slot(base: Path, *, first_uid: int) -> Iterator[Slot]:
    """The first slot that is free, locked until the block ends. Raises NoSlot."""
    uid_of = (lambda number: first_uid + number) if os.geteuid() == 0 else lambda _: None
    make_folder(base)
    for number in range(MOST_SLOTS):
        lock = os.open(base / f"{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _is_locked_now(lock):
                continue
            slot = Slot(number, make_folder(base / str(number)), uid_of(number))
            slot.make_room()
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
    """A folder of ours, made if it is missing. Raises NoSlot for one that others may change.

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
    found = path.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not is_ours or found.st_mode & 0o022:
        raise NoSlot(f"{path} is no folder of this account alone; remove it.")
    return path


def entries_of(path: Path) -> Iterator[os.DirEntry[str]]:
    """All that is below a folder, what is in a folder before the folder itself.

    Folders that their owner has closed are opened. Nobody else may be at work below it.
    """
    os.chmod(path, os.stat(path).st_mode | _PRIVATE)
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from entries_of(Path(entry.path))
            yield entry


def remove_tree(path: Path) -> None:
    """Remove a folder with all in it, also what its owner has closed."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    for entry in entries_of(path):
        if entry.is_dir(follow_symlinks=False):
            os.rmdir(entry.path)
        else:
            os.unlink(entry.path)
    path.rmdir()

"""Safe opening, traversal and removal of folders in which a script has worked.

Every step goes from an opened folder to a name in it, and no link is followed, so that links
planted by a script have no effect, whoever runs the service. A traversal refuses folders that are
too deep; a removal takes any depth.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from wms.core.errors import PilotageError

#: Files that lie deeper have names that no workspace can have.
MOST_LEVELS: Final = 128
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME_ONLY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_OURS = 0o700


class WorkspaceTooLarge(PilotageError):
    """The workspace, or the files that a script left in it, exceed a limit."""


class Entry(NamedTuple):
    """A file or folder below another: relative path, open parent folder, name, and status."""

    path: str
    folder: int
    name: str
    status: os.stat_result

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def is_plain_file(self) -> bool:
        return stat.S_ISREG(self.status.st_mode)


@contextmanager
def opened(path: Path | str, *, at: int | None = None) -> Iterator[int]:
    """Context manager:

    an opened folder, even one without permissions. Raises OSError for a link.
    """
    descriptor = open_folder(path, at=at)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_folder(path: Path | str, *, at: int | None = None) -> int:
    """Descriptor of an opened folder, as `opened` gives it, to be closed by the caller."""
    descriptor = open_anyway(path, _FOLDER, at=at)
    # Root came in without this, but the account that the folder belongs to would not.
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if mode & _OURS != _OURS:
        os.fchmod(descriptor, mode | _OURS)
    return descriptor


def open_anyway(path: Path | str, flags: int, *, at: int | None = None) -> int:
    """Open a file or folder even if its owner has no permission; the owner gets it."""
    try:
        return os.open(path, flags, dir_fd=at)
    except PermissionError:
        handle = os.open(path, _NAME_ONLY, dir_fd=at)
    try:
        mode = os.fstat(handle).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise PermissionError(f"{path} is neither a file nor a directory")
        # The handle itself takes no other mode; this way leads to what it stands for, and no other.
        os.chmod(f"/proc/self/fd/{handle}", stat.S_IMODE(mode) | _OURS)
    finally:
        os.close(handle)
    return os.open(path, flags, dir_fd=at)


def entries_of(folder: int) -> Iterator[Entry]:
    """All entries below an open folder, a folder before its contents. Raises WorkspaceTooLarge."""
    yield from _entries(folder, "", 1)


def _entries(folder: int, prefix: str, level: int) -> Iterator[Entry]:
    if level > MOST_LEVELS:
        raise WorkspaceTooLarge(f"There are directories more than {MOST_LEVELS} deep.")
    with os.scandir(folder) as entries_here:
        for each in entries_here:
            status = each.stat(follow_symlinks=False)
            entry = Entry(prefix + each.name, folder, each.name, status)
            yield entry
            if entry.is_folder:
                with opened(each.name, at=folder) as below:
                    yield from _entries(below, f"{entry.path}/", level + 1)


def remove_tree(path: Path) -> None:
    """Remove a file or folder of any depth and permissions, if it exists."""
    try:
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_folder:
        path.unlink()
        return
    with opened(path) as folder:
        _empty(folder)
    path.rmdir()


def _empty(top: int) -> None:
    """Remove all below a folder.

    Subfolders are moved to the top first, so that depth does not matter.
    """
    while folders := _folders_left(top):
        for name in folders:
            with opened(name, at=top) as below:
                for each in _folders_left(below):
                    _make_movable(each, below)
                    os.rename(each, secrets.token_hex(16), src_dir_fd=below, dst_dir_fd=top)
            os.rmdir(name, dir_fd=top)


def _folders_left(folder: int) -> list[str]:
    """Remove all entries but folders; the names of the folders."""
    with os.scandir(folder) as entries_here:
        entries = [(each.name, each.is_dir(follow_symlinks=False)) for each in entries_here]
    for name, is_folder in entries:
        if not is_folder:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
    return [name for name, is_folder in entries if is_folder]


def _make_movable(name: str, folder: int) -> None:
    """Grant the permission to write into a folder, which moving it requires."""
    with opened(name, at=folder):
        pass

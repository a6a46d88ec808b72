"""Pool of Unix accounts for payloads, shared by all pilots of a node, with a lock for each account.

The lock of an account is a file, in a folder that no payload can enter: root's, which all pilots of
the node share, or one of the pilot's own account. It is held by whoever has it open, and so goes
with the last process that keeps the payload, however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from .base import FenceUnusable, NoFreeAccount, Reservation

#: Folder of locks made by root, for pilots of several accounts.
SHARED = Path("/run/pilotage")
_OWN = "/var/tmp/pilotage-accounts-{uid}"
_OF_OTHERS = stat.S_IRWXO
_OF_GROUP = stat.S_IRWXG


class PayloadAccount(Reservation):
    """One account for payloads, as long as its lock is held."""

    def __init__(self, name: str, lock: int) -> None:
        self.name = name
        self._lock: int | None = lock

    @property
    def lock(self) -> int:
        """Descriptor that holds the lock."""
        assert self._lock is not None
        return self._lock

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class AccountPool:
    """Accounts of these names, locked by files in a folder."""

    def __init__(self, names: Sequence[str], folder: Path) -> None:
        self._names = tuple(names)
        self._folder = folder

    def acquire(self) -> PayloadAccount:
        """Take one. Raises `NoFreeAccount`, or OSError where the folder is gone."""
        account = self.acquire_of(self._names)
        if account is None:
            problem = f"all {len(self._names)} accounts for payloads are in use on this node"
            raise NoFreeAccount(problem)
        return account

    def acquire_of(self, names: Sequence[str]) -> PayloadAccount | None:
        """Take one of these accounts, whose locks are in the same folder; None where none is free.

        Raises OSError where the folder is gone.
        """
        for name in names:
            lock = _locked(self._folder / name)
            if lock is not None:
                return PayloadAccount(name, lock)
        return None


def folder_of_locks(shared: Path = SHARED) -> Path:
    """Folder of locks that all pilots with the same accounts agree on. Raises FenceUnusable."""
    if os.path.lexists(shared):
        return _closed(shared, uid=0, others=_OF_OTHERS)
    own = Path(_OWN.format(uid=os.geteuid()))
    try:
        own.mkdir(mode=0o700)
    except FileExistsError:
        # Another pilot was first; or somebody who is none.
        pass
    except OSError as error:
        raise FenceUnusable(f"{own} cannot be made: {error.strerror}") from error
    return _closed(own, uid=os.geteuid(), others=_OF_OTHERS | _OF_GROUP)


def _closed(folder: Path, *, uid: int, others: int) -> Path:
    """Check that a folder is this account's and closed to others. Raises FenceUnusable."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != uid or status.st_mode & others:
        raise FenceUnusable(
            f"{folder}, where accounts for payloads are locked, is not a folder of "
            f"{'root' if uid == 0 else 'the pilot'} that is closed to others"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        problem = f"{folder}, where accounts for payloads are locked, is closed to the pilot"
        raise FenceUnusable(problem)
    return folder


def _locked(file: Path) -> int | None:
    """Lock a file and return its descriptor; None if another process holds it."""
    try:
        lock = os.open(file, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except PermissionError:
        # Another account has made it at this moment, and is about to hold it.
        return None
    with contextlib.suppress(PermissionError):
        # Whatever the umask: pilots of other accounts hold it too, and only they get so far.
        os.fchmod(lock, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock

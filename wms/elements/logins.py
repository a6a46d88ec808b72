"""Logins of elements: a secret that stands in place of what a queue's settings name for the login.

What programs want to read from a file is in memory that has no name, or in a folder for this
account alone that goes with the call. A folder that a killed process left is removed by the next
call, and by whoever starts a worker.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from wms.elements.protocol import ElementError, Unreachable

_LOCK = "in-use"


class LoginKind(StrEnum):
    """Kind of secret that a batch system is shown."""

    SSH_KEY = "ssh-key"
    HTCONDOR_TOKEN = "htcondor-token"
    BEARER_TOKEN = "bearer-token"
    CERTIFICATE = "certificate"


class BadLogin(ElementError):
    """The login is not one that this queue's element can use."""


@dataclass(frozen=True, slots=True)
class Login:
    """Secret of one kind; `mark` tells it from others without telling it.

    Over `ssh`, `account` is logged in to in place of the settings' user. `directory` is where the
    pilots' files are there, in place of the settings' directory.
    """

    kind: LoginKind
    secret: str = field(repr=False)
    mark: str
    account: str = ""
    directory: str = ""


@contextlib.contextmanager
def in_memory(text: str) -> Iterator[Path]:
    """Path under which programs of this account read the text, as long as the block lasts.

    It is nowhere on a disk: who is killed leaves nothing.
    """
    descriptor = os.memfd_create("login", os.MFD_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, text.encode())
        yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def in_folder(name: str, text: str, *, base: Path | None = None) -> Iterator[Path]:
    """Folder with one file of this name and text, as long as the block lasts.

    It is for this account alone, and locked: what a killed process left is not.
    """
    base = base or default_base()
    _make_private(base)
    sweep(base)
    folder = Path(tempfile.mkdtemp(dir=base))
    try:
        with _locked(folder):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            content = folder / "content"
            content.mkdir(mode=0o700)
            with os.fdopen(os.open(content / name, flags, 0o600), "w") as file:
                file.write(text)
            yield content
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(base: Path | None = None) -> int:
    """Remove folders of processes that are gone; return how many there were."""
    base = base or default_base()
    removed = 0
    with contextlib.suppress(FileNotFoundError):
        for folder in base.iterdir():
            if _is_left(folder):
                shutil.rmtree(folder, ignore_errors=True)
                removed += 1
    return removed


def default_base() -> Path:
    """Folder of all such folders of this account on this host."""
    return Path(tempfile.gettempdir(), f"pilotage-logins-{os.geteuid()}")


def _make_private(base: Path) -> None:
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = base.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise Unreachable(f"{base} is not a folder for this account alone")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_left(folder: Path) -> bool:
    """Whether nobody holds the folder's lock; one that has none yet holds no secret either."""
    try:
        with (folder / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return (folder / "content").exists()
    except (FileNotFoundError, NotADirectoryError, BlockingIOError):
        return False

"""Directories of one job on the worker node, and the folders that it shares with the node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..control import Attempt

#: The file with which a payload tells attributes of its job.
FILE_NAME = "attributes"


def home_of(work_dir: Path, attempt: Attempt) -> Path:
    """The directory of an attempt, above the one that its payload runs in."""
    job, number = attempt
    return work_dir / f"job-{job}-{number}"


@dataclass(frozen=True)
class SharedFolder:
    """A folder of the node that payloads see at its own place."""

    path: str
    is_writable: bool = False


@dataclass(frozen=True)
class Room:
    """The folders of one job, as the pilot calls them, and those that it shares with the node."""

    home: Path
    owner: str = ""
    gpus: int = 0
    shared: tuple[SharedFolder, ...] = ()

    @property
    def sandbox(self) -> Path:
        """Working directory of the payload."""
        return self.home / "sandbox"

    @property
    def tmp(self) -> Path:
        """Its files for the moment."""
        return self.home / "tmp"

    @property
    def shm(self) -> Path:
        """What it sees as shared memory, where the fence gives it its own."""
        return self.home / "shm"

    @property
    def told(self) -> Path:
        """Where it tells attributes of its job."""
        return self.home / "told"

    @property
    def attributes_file(self) -> Path:
        """The file in which it tells them."""
        return self.told / FILE_NAME

    def folders(self) -> tuple[Path, ...]:
        """All of them."""
        return (self.sandbox, self.tmp, self.shm, self.told)

    def make(self) -> None:
        """Make the folders."""
        for each in self.folders():
            each.mkdir(parents=True)

"""Directories of one job on the worker node, and the folders that it shares with the node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..control import Attempt

#: The file with which a payload tells attributes of its job.
FILE_NAME = "attributes"


def attempt_directory(work_dir: Path, attempt: Attempt) -> Path:
    """Directory of an attempt, above the one that its payload runs in."""
    job, number = attempt
    return work_dir / f"job-{job}-{number}"


@dataclass(frozen=True)
class SharedFolder:
    """Folder of the node that payloads see under the same path."""

    path: str
    is_writable: bool = False


@dataclass(frozen=True)
class JobDirectories:
    """Directories of one job as paths on the node, and the folders it shares with the node."""

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
        """Directory for temporary files."""
        return self.home / "tmp"

    @property
    def shm(self) -> Path:
        """Directory for shared memory, where the fence gives the payload its own."""
        return self.home / "shm"

    @property
    def attributes_folder(self) -> Path:
        """Directory of the file with attributes of the job."""
        return self.home / "attributes"

    @property
    def attributes_file(self) -> Path:
        """File with attributes of the job, which the payload writes."""
        return self.attributes_folder / FILE_NAME

    def folders(self) -> tuple[Path, ...]:
        """All directories that the payload may write."""
        return (self.sandbox, self.tmp, self.shm, self.attributes_folder)

    def make(self) -> None:
        """Create the directories."""
        for each in self.folders():
            each.mkdir(parents=True)

"""Programs that are not ours, behind the fence of scripts: a folder to work in, and their run.

The fence belongs to DAGs, which are above: it is registered here when Django is set up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run; it sees nothing of the portal's own environment."""

    executable: str
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """Limits of one run: seconds in all and without anything done, bytes of a file and of output.

    Memory and processes are those of scripts.
    """

    wall_s: float
    stall_s: float
    file_bytes: int
    output_bytes: int


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """End of a run; `failure` is why it was not started or was stopped."""

    exit_code: int
    failure: str
    output: bytes


class Workplace(Protocol):
    """A folder of one transfer, the only one that its programs can write to; it goes with it."""

    @property
    def folder(self) -> Path:
        """The folder."""

    @property
    def root(self) -> str:
        """The same folder, as programs see it."""

    def open_file(self, name: str) -> BinaryIO:
        """A file that a program has left there. Raises OSError for a link, and what is no file."""

    def run(
        self, program: Program, limits: ProgramLimits, *, heartbeat: Callable[[], None]
    ) -> ProgramEnd:
        """Run a program in the folder, to which all that is in it is handed over.

        What `heartbeat` raises stops it, and is raised.
        """


class NoWorkplace(Exception):
    """Programs cannot be fenced in on this host, or nothing else is free; the message says why."""


#: Folders that the programs can read besides the system's, and whether they have the network.
WorkplaceMaker = Callable[[Sequence[str], bool], AbstractContextManager[Workplace]]

_makers: list[WorkplaceMaker] = []


def register_workplaces(maker: WorkplaceMaker) -> None:
    """Have programs run in what this makes."""
    _makers[:] = [maker]


def workplace(readable: Sequence[str], *, has_network: bool) -> AbstractContextManager[Workplace]:
    """A workplace. Raises NoWorkplace when it is entered."""
    return _makers[0](readable, has_network)

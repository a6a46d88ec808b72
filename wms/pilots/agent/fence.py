"""What keeps a payload from the pilot, from the rest of the node and from other payloads.

A `Fence` is chosen once for a pilot; it makes an `Enclosure` for each job. The enclosure says how
things are called inside, and which program has to be started so that the payload runs there.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import sandbox
from .watchdog import Limits

#: The file with which a payload tells attributes of its job.
FILE_NAME = "attributes"


class FenceFails(Exception):
    """This fence cannot be used on this node; the text says why."""


class NoPlace(OSError):
    """All accounts for payloads are in use."""


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


@dataclass(frozen=True)
class Plan:
    """The first program of a payload. In `argv`, `@OPTIONS@` stands for a descriptor of `options`.

    `helpers` are the levels of processes that belong to the fence; `signal_argv` is what signals
    the payload where the pilot itself may not, with `@SIGNAL@` for the signal's name.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    stdin: str | None = None
    options: str | None = None
    helpers: int = 0
    signal_argv: Sequence[str] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    descriptors: Sequence[int] = ()
    #: The fence tells a signal as 128 and its number.
    is_signal_in_code: bool = False


class Enclosure:
    """The place of one job without any fence: under the pilot's account, with all that it sees."""

    name = "none"

    def __init__(self, room: Room) -> None:
        self.room = room
        #: A folder on the disk where the payload writes.
        self.disk = room.home

    @property
    def home(self) -> str:
        """The working directory, as the payload calls it."""
        return str(self.room.sandbox)

    @property
    def tmp(self) -> str:
        """The folder for files of the moment, as the payload calls it."""
        return str(self.room.tmp)

    @property
    def attributes_file(self) -> str:
        """The file for attributes, as the payload calls it."""
        return str(self.room.attributes_file)

    def executable(self, name: str) -> str:
        """How the payload calls its executable; raises `BadPath` where it cannot exist."""
        found = sandbox.locate_executable(self.room.sandbox, name)
        if found == name:
            return name
        return f"{self.home}/{os.path.relpath(found, os.path.realpath(self.room.sandbox))}"

    def hides(self, path: str) -> bool:
        """Tell whether a file of the node cannot be seen inside."""
        return False

    def enter(self) -> None:
        """Hand the folders over to the payload, with all that is in them now."""

    def plan(self, command: Sequence[str], environment: Mapping[str, str], limits: Limits) -> Plan:
        """How to start `command`, with exactly this environment."""
        return Plan(
            argv=command,
            environment=environment,
            directory=str(self.room.sandbox),
            limits=resource_limits(limits),
        )

    def count_files(self) -> float:
        """The MB that its files take on disk."""
        return sum(map(sandbox.tree_mb, self.room.folders()))

    def leave(self, outputs: Sequence[str]) -> None:
        """Take the folders back when nothing of the payload runs; these outputs are wanted."""

    def close(self) -> None:
        """Give back what was held for this job."""


class Place:
    """What is kept of a fence for one job: nothing, where it takes in any number."""

    def close(self) -> None:
        """Let others have it; may be called again."""


class Fence:
    """No fence. It is also what the others are made after."""

    name = "none"
    #: Others on this node may have taken the last place at any moment.
    has_few_places = False

    def place(self) -> Place:
        """Keep a place for one job. Raises `NoPlace`."""
        return Place()

    def enclose(self, room: Room, place: Place | None = None) -> Enclosure:
        """Enclose one job, in the place that was kept for it. Raises OSError."""
        return Enclosure(room)


def resource_limits(limits: Limits, *, has_own_account: bool = False) -> dict[str, int]:
    """What the kernel keeps each process to. Of numbers of processes it counts whole accounts."""
    found = {"RLIMIT_CORE": 0}
    if limits.disk_mb is not None:
        # Of a single file; stdout is one too. A little more, so that the watchdog tells the reason.
        found["RLIMIT_FSIZE"] = int(limits.disk_mb * 2**20) + 2**20
    if limits.cpu_s is not None:
        # For each process: the watchdog looks at their sum, and is to be the first to act.
        found["RLIMIT_CPU"] = int(limits.cpu_s + limits.grace_s) + 60
    if has_own_account and limits.processes is not None:
        found["RLIMIT_NPROC"] = int(limits.processes)
    return found


def shell_lines(
    command: Sequence[str], environment: Mapping[str, str], directory: str, processes: float | None
) -> str:
    """A script for /bin/sh that becomes `command` with this environment, in this directory.

    A variable whose name no shell knows is left out.
    """
    lines = [f"cd -- {shlex.quote(directory)} || exit 126"]
    for name, value in environment.items():
        if name.isidentifier() and name.isascii():
            lines.append(f"export {name}={shlex.quote(value)}")
    if processes is not None:
        # The letter is one thing in bash and another in dash.
        most = int(processes)
        lines.append(f"ulimit -u {most} 2>/dev/null || ulimit -p {most} 2>/dev/null")
    lines.append(f"exec {shlex.join(command)} </dev/null")
    return "\n".join(lines) + "\n"


class Account(Place):
    """One account, as long as its lock is held."""

    def __init__(self, name: str, lock: socket.socket) -> None:
        self.name = name
        self.lock = lock

    def close(self) -> None:
        self.lock.close()


class Accounts:
    """Accounts of which one job at a time uses one, over all pilots of this node.

    A name in the kernel's own list of sockets is the lock: it goes with the last process that
    holds it, however that ends.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)

    def hold(self) -> Account:
        """Take one. Raises `NoPlace`."""
        for name in self._names:
            with contextlib.suppress(OSError):
                return Account(name, _bound(f"\0pilotage-account-{name}"))
        raise NoPlace(f"all {len(self._names)} accounts for payloads are in use on this node")


def _bound(address: str) -> socket.socket:
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        lock.bind(address)
    except OSError:
        lock.close()
        raise
    return lock


def owned_by(folders: Sequence[Path], uid: int) -> None:
    """Give folders and all that is in them to an account; root can."""
    for folder in folders:
        for path in _with_all_below(folder):
            os.chown(path, uid, uid, follow_symlinks=False)


def _with_all_below(folder: Path) -> Iterator[str]:
    yield str(folder)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield os.path.join(parent, name)

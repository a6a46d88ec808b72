"""What keeps a payload from the pilot, from the rest of the node and from other payloads.

A `Fence` is chosen once for a pilot; it makes an `Enclosure` for each job. The enclosure says how
things are called inside, and which program has to be started so that the payload runs there.
"""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..files import sandbox
from ..files.disk_usage import Entries, entries_below
from ..files.job_directories import Room
from ..inline_program import program_of
from ..resources.limits import Limits
from ..supervisor import network_guard
from . import syscall_filter
from .network import OPEN, Network

log = logging.getLogger("pilot")


class FenceFails(Exception):
    """This fence cannot be used on this node; the text says why."""


class NoPlace(OSError):
    """All accounts for payloads are in use."""


@dataclass(frozen=True)
class Gate:
    """What a process does before it becomes a program of the payload's (see `gate`)."""

    has_own_keys: bool = True
    has_own_network: bool = False
    #: Addresses in a network of its own that lead out.
    listens_at: Sequence[tuple[str, int]] = ()
    has_no_capabilities: bool = False
    #: Filters of system calls: what a guard is asked of, and what is denied.
    watched: bytes = b""
    denied: bytes = b""
    #: Else the kernel lets it open no connection of TCP: a guard does.
    may_connect: bool = True


@dataclass(frozen=True)
class Plan:
    """The first program of a payload. In `argv`, names of `files` stand for descriptors of them.

    It is started through `gate`. With `inner` it is a fence that starts the program of that gate
    (see `gate_words`), and `stdin` is for what comes after. `guard` is its way, `uid` the payload's
    account where the keeper's is root's, `portal` what a relay leads to. `helpers` are the levels
    of processes that belong to the fence; `signal_argv` is what signals the payload where the pilot
    itself may not, with `@SIGNAL@` for the signal's name.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    stdin: str | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    gate: Gate | None = None
    guard: str = ""
    inner: Gate | None = None
    uid: int | None = None
    portal: tuple[str, int] | None = None
    helpers: int = 0
    signal_argv: Sequence[str] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    descriptors: Sequence[int] = ()
    #: The fence tells a signal as 128 and its number.
    is_signal_in_code: bool = False


class Enclosure:
    """The place of one job without any fence: under the pilot's account, with all that it sees."""

    name = "none"

    def __init__(self, room: Room, network: Network | None = None) -> None:
        self.room = room
        self.network = network or Network()
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

    def entries(self) -> Entries:
        """What its files take on disk, one after the other. Raises TooDeep."""
        return entries_below(self.room.folders())

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
    #: Networks that its payloads can have. Nothing keeps one without a fence from the node's.
    networks: tuple[str, ...] = (OPEN,)
    #: Others on this node may have taken the last place at any moment.
    has_few_places = False

    def __init__(self, network: Network | None = None) -> None:
        """Raises FenceFails, and OSError, where it cannot give payloads this network."""
        self.network = (network or Network()).guarded(has_other_account=self.has_few_places)
        if self.network.name not in self.networks:
            raise FenceFails(
                f"payloads cannot be given the network {self.network.name!r}: "
                f"{self.name} leaves them in the node's"
            )

    def place(self) -> Place:
        """Keep a place for one job. Raises `NoPlace`."""
        return Place()

    def enclose(self, room: Room, place: Place | None = None) -> Enclosure:
        """Enclose one job, in the place that was kept for it. Raises OSError."""
        return Enclosure(room, self.network)


def outer_gate(network: Network, addresses: Sequence[str]) -> Gate:
    """What is done before a fence is set up, for a payload in this network. Raises OSError."""
    port = network.portal[1] if network.portal else 0
    gate = Gate(has_own_network=network.is_own, listens_at=[(each, port) for each in addresses])
    return replace(gate, **_watching(network.guard))


def inner_gate(network: Network, denied: bytes) -> Gate:
    """What is done behind a fence that is another's program. Raises OSError."""
    gate = Gate(has_no_capabilities=True, denied=denied)
    return replace(gate, **_watching(network.guard))


def _watching(way: str) -> dict[str, Any]:
    if not way:
        return {}
    watched = syscall_filter.watched(gives_sockets=way == network_guard.FILTERS)
    return {"watched": watched, "may_connect": way != network_guard.CONNECTS}


def gate_words(python: str) -> list[str]:
    """The first program behind such a fence."""
    return [python, "-I", "-S", "-c", program_of("supervisor.confinement")]


def filter_of_calls() -> bytes:
    """What is denied to payloads behind a fence; nothing where no filter is known."""
    try:
        return syscall_filter.denied()
    except syscall_filter.NoFilter as error:
        log.warning("system calls of payloads are not filtered: %s", error)
        return b""


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


def owned_by(folders: Sequence[Path], uid: int) -> None:
    """Give folders and all that is in them to an account; root can."""
    unseen = [os.fspath(each) for each in folders]
    while unseen:
        path = unseen.pop()
        os.chown(path, uid, uid, follow_symlinks=False)
        if os.path.isdir(path) and not os.path.islink(path):
            unseen += [os.path.join(path, name) for name in os.listdir(path)]
